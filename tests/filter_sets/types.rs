//! What has the names of a set but other types: no value is read as one of the usual type.

use super::*;
use common::{refused, sqlstate};

/// The types of the extension's `bloom_set_check` after the columns, with constants of them.
const USUAL: [(&str, &str); 6] = [
    ("regtype", "integer"),
    ("bigint", "0"),
    ("bigint", "1000"),
    ("float8", "0.01"),
    ("interval", "1 day"),
    ("boolean", "true"),
];

/// A function of the same name in the extension's schema, which anybody makes who may make one
/// there.
#[test]
fn a_constraint_that_calls_another_function_of_the_name_makes_no_set() {
    let mut client = server().database("overloads");
    let others = [
        ("oid", "25"),
        ("uuid", "{00000000-0000-0000-0000-000000001000}"),
        ("smallint", "4096"),
    ];
    let others = others.into_iter().zip([0, 1, 2]).chain([
        (("bigint", "4096"), 3),
        (("bigint", "4096"), 4),
        (("point", "(1,2)"), 4),
        (("bigint", "4096"), 5),
    ]);
    let mut table = |arguments: &[(&str, &str)]| {
        let constants: Vec<String> = arguments
            .iter()
            .map(|(of, constant)| format!("'{constant}'::{of}"))
            .collect();
        let sql = format!(
            "DROP TABLE IF EXISTS s;
             CREATE TABLE s (bucket bigint PRIMARY KEY, hashes bytea NOT NULL,
                CHECK (bloom_set_check(bucket, hashes, {})))",
            constants.join(", ")
        );
        run(&mut client, &sql);
        sqlstate(&mut client, "SELECT bloom_set_contains('s', 1)")
    };
    // It is one of another kind of elements.
    assert_eq!(table(&USUAL), "42804");
    for (other, place) in others {
        let mut arguments = USUAL;
        arguments[place] = other;
        let types = arguments.map(|(of, _)| of).join(", ");
        run(
            &mut server().connect("overloads"),
            &format!(
                "CREATE FUNCTION bloom_set_check(bigint, bytea, {types}) RETURNS boolean LANGUAGE sql IMMUTABLE
                    AS 'SELECT true'"
            ),
        );
        assert_eq!(table(&arguments), "42809", "{types}");
    }
}

/// A policy that alters the table of the set, or puts another one in its place, while a statement
/// about it is planned.
#[test]
fn a_table_that_is_altered_while_a_statement_is_planned_is_to_be_retried() {
    let changes = [
        "ALTER TABLE s DROP CONSTRAINT filter_set;
         ALTER TABLE s ALTER hashes TYPE bigint USING 4096;
         UPDATE s SET bucket = 2 * bucket;
         INSERT INTO s SELECT bucket + 1, hashes FROM s",
        "ALTER TABLE s RENAME TO before;
         CREATE TABLE s (bucket bigint PRIMARY KEY, hashes bigint);
         INSERT INTO s SELECT b, 4096 FROM generate_series(1024, 2047) AS b",
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let name = format!("altered_in_plan_{i}");
        let mut client = server().database(&name);
        run(
            &mut client,
            &format!(
                "SELECT bloom_set_create('s', 'integer');
                 CREATE TABLE flag ();
                 CREATE FUNCTION change() RETURNS boolean LANGUAGE plpgsql AS $$
                 BEGIN
                     IF to_regclass('flag') IS NOT NULL THEN
                         DROP TABLE flag;
                         {change};
                     END IF;
                     RETURN true;
                 END $$;
                 CREATE FUNCTION policy() RETURNS boolean LANGUAGE plpgsql IMMUTABLE
                    AS $$ BEGIN RETURN change(); END $$;
                 CREATE ROLE {name};
                 GRANT CREATE ON SCHEMA public TO {name};
                 ALTER TABLE s OWNER TO {name};
                 ALTER TABLE flag OWNER TO {name};
                 ALTER TABLE s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
                 CREATE POLICY a ON s FOR SELECT USING (true);
                 CREATE POLICY b ON s FOR INSERT WITH CHECK (true);
                 CREATE POLICY c ON s FOR UPDATE USING (policy());
                 SET ROLE {name}"
            ),
        );
        refused(&mut client, "40001", "SELECT bloom_set_add('s', 1)");
    }
}
