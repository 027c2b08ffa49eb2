//! What the extension consists of, to compare one way to it with another.

use super::{column, run, value};
use postgres::Client;

/// Everything that the extension owns, each object with all that defines it, without names of
/// schemas or identifiers.
pub fn objects(client: &mut Client) -> Vec<String> {
    run(client, "SET search_path = ''");
    let schema: String = value(
        client,
        "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'pg_bloom'",
    );
    run(client, &format!("SET search_path = {schema}"));
    let objects = column::<String>(
        client,
        "WITH members AS (
             SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object,
                    obj_description(objid, classid::regclass::name) AS comment
             FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
                 AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_bloom'))
         SELECT concat_ws(' | ', object, comment,
             CASE WHEN p.prokind = 'f' THEN pg_get_functiondef(p.oid) END,
             (to_jsonb(p) - '{oid,pronamespace,proowner,proargtypes,proallargtypes,prorettype,prosupport,proargdefaults}'::text[])::text,
             p.prorettype::regtype::text, pg_get_function_arguments(p.oid),
             (to_jsonb(a) - '{aggfnoid,aggtranstype}'::text[])::text, a.aggtranstype::regtype::text,
             (to_jsonb(o) - '{oid,oprnamespace,oprowner,oprcom,oprnegate,oprleft,oprright,oprresult}'::text[])::text,
             o.oprcom::regoperator::text, o.oprnegate::regoperator::text, o.oprresult::regtype::text,
             (to_jsonb(t) - '{oid,typnamespace,typowner,typarray,typrelid,typelem}'::text[])::text,
             nullif(t.typelem, 0)::regtype::text,
             c.castfunc::regprocedure::text, c.castcontext::text, c.castmethod::text,
             k.opcdefault::text, k.opckeytype::regtype::text, k.opcintype::regtype::text,
             (SELECT string_agg(concat_ws(' ', amopstrategy, amopopr::regoperator, amoppurpose), ', ' ORDER BY amopstrategy)
              FROM pg_amop WHERE amopfamily = k.opcfamily),
             (SELECT string_agg(concat_ws(' ', amprocnum, amproc), ', ' ORDER BY amprocnum)
              FROM pg_amproc WHERE amprocfamily = k.opcfamily))
         FROM members
             LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND p.oid = objid
             LEFT JOIN pg_aggregate AS a ON classid = 'pg_proc'::regclass AND a.aggfnoid = objid
             LEFT JOIN pg_operator AS o ON classid = 'pg_operator'::regclass AND o.oid = objid
             LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND t.oid = objid
             LEFT JOIN pg_cast AS c ON classid = 'pg_cast'::regclass AND c.oid = objid
             LEFT JOIN pg_opclass AS k ON classid = 'pg_opclass'::regclass AND k.oid = objid
         ORDER BY 1",
    );
    run(client, "RESET search_path");
    // The name of an overloaded function is always qualified.
    objects
        .iter()
        .map(|object| object.replace(&format!("{schema}."), ""))
        .collect()
}

/// Asserts that two lists of objects are the same.
pub fn same(expected: &[String], found: &[String], what: &str) {
    let only = |a: &[String], b: &[String]| {
        a.iter()
            .filter(|object| !b.contains(object))
            .cloned()
            .collect::<Vec<_>>()
    };
    let (missing, added) = (only(expected, found), only(found, expected));
    assert!(
        expected.len() > 100 && missing.is_empty() && added.is_empty(),
        "{what}\n-{missing:#?}\n+{added:#?}"
    );
}
