//! `bloom_filter_handler`: the functions that PostgreSQL calls for an index of this access method.
//! Each finds the kind of the index, and calls its function in [`super::kind::IndexKind`].

use super::{kind, kind_of, options, ranges, session, validate};
use crate::element::HASH_SUPPORT;
use crate::error::unsupported;
use crate::key_condition::KEY_OF_ELEMENT;
use crate::pg::call::guard::Entry;
use crate::pg::call::{Call, Outcome, Result, SqlValue, raise};
use crate::pg::catalog::operators;
use crate::pg::memory;
use crate::pg::method::planning::PlannedScan;
use crate::pg::method::scan::{self, RowBatch, keys};
use crate::pg::method::table::{NewIndex, row_at};
use crate::pg::method::vacuum::{self, DeadRows};
use crate::pg::storage::relation::{Relation, own_method};
use crate::pg::version;
use pgrx::pg_sys::{self, Datum};

/// Returns a result, or raises its error.
fn or_raise<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| raise(error))
}

/// Implements `bloom_filter_handler(internal) → index_am_handler`.
fn handler(_: &Call) -> Outcome {
    // SAFETY: `ambuild` is this library's own function.
    unsafe { own_method(ROUTINE.ambuild) };
    Ok(Some(version::returned(&ROUTINE)))
}

/// What the access method can do. Everything that isn't named is `false` or absent. In particular a
/// scan must have a scan key, since the index doesn't know all rows, and a predicate lock covers
/// the whole index.
static ROUTINE: pg_sys::IndexAmRoutine = pg_sys::IndexAmRoutine {
    type_: pg_sys::NodeTag::T_IndexAmRoutine,
    amstrategies: ranges::MOST_STRATEGIES.cast_unsigned(),
    amsupport: HASH_SUPPORT.cast_unsigned(),
    amsearcharray: true,
    ambuild: Some(ambuild),
    ambuildempty: Some(ambuildempty),
    aminsert: Some(aminsert),
    ambulkdelete: Some(ambulkdelete),
    amvacuumcleanup: Some(amvacuumcleanup),
    amcostestimate: Some(amcostestimate),
    amoptions: Some(amoptions),
    amvalidate: Some(amvalidate),
    amadjustmembers: Some(amadjustmembers),
    ambeginscan: Some(ambeginscan),
    amrescan: Some(amrescan),
    amgetbitmap: Some(amgetbitmap),
    amendscan: Some(amendscan),
    // SAFETY: plain data, in which zero is false or nothing.
    ..unsafe { std::mem::zeroed() }
};

// SAFETY of all that follows: PostgreSQL calls these with relations that are open and locked, and
// with what the documentation of index access methods says.

/// Builds an index from the rows of its table, for CREATE INDEX and REINDEX. Returns the numbers of
/// rows of both. What this session kept of the index is forgotten.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn ambuild(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    info: *mut pg_sys::IndexInfo,
) -> *mut pg_sys::IndexBuildResult {
    // SAFETY: PostgreSQL calls this; the result is new memory.
    unsafe { Entry::new() }.run(|| unsafe {
        let new_index = NewIndex::from_ambuild(table, index, info);
        let counts = or_raise((kind_of(new_index.index()).build)(&new_index));
        session::forget(new_index.index());
        memory::copied(&counts)
    })
}

/// Writes the file by which PostgreSQL replaces an unlogged index after a crash: an index without
/// rows.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn ambuildempty(index: pg_sys::Relation) {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| unsafe {
        let index = Relation::new(index);
        or_raise((kind_of(index).build_empty)(index));
    });
}

/// Adds a new row of the table to the index, unless its value is NULL, which no lookup finds.
/// `place` is where the row is in the table.
#[pgrx::pg_guard]
#[allow(clippy::too_many_arguments, reason = "PostgreSQL's own signature")]
unsafe extern "C-unwind" fn aminsert(
    index: pg_sys::Relation,
    values: *mut Datum,
    nulls: *mut bool,
    place: pg_sys::ItemPointer,
    _table: pg_sys::Relation,
    _check: pg_sys::IndexUniqueCheck::Type,
    _is_unchanged: bool,
    _info: *mut pg_sys::IndexInfo,
) -> bool {
    // SAFETY: PostgreSQL calls this, with a value for the one column, and a place.
    unsafe { Entry::new() }.run(|| unsafe {
        if !*nulls {
            let index = Relation::new(index);
            or_raise((kind_of(index).insert)(index, SqlValue { datum: *values }, row_at(place)));
        }
    });
    // The result is for unique indexes only.
    false
}

/// Does a pass of VACUUM: removes the rows from the index for which `is_dead` is true. `known` is
/// what an earlier pass of the same VACUUM has returned, or null; the result has the counts of all
/// passes.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn ambulkdelete(
    info: *mut pg_sys::IndexVacuumInfo,
    known: *mut pg_sys::IndexBulkDeleteResult,
    is_dead: pg_sys::IndexBulkDeleteCallback,
    state: *mut std::ffi::c_void,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| unsafe {
        let (index, dead) = (Relation::new((*info).index), DeadRows::new(is_dead, state));
        vacuum::write(or_raise((kind_of(index).bulk_delete)(index, &dead)), known)
    })
}

/// Returns the counts of the index at the end of VACUUM, and does nothing for ANALYZE. `known` is
/// what the passes of this VACUUM have returned, or null if there was none.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amvacuumcleanup(
    info: *mut pg_sys::IndexVacuumInfo,
    known: *mut pg_sys::IndexBulkDeleteResult,
) -> *mut pg_sys::IndexBulkDeleteResult {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| unsafe {
        if (*info).analyze_only {
            return known;
        }
        let index = Relation::new((*info).index);
        let counts = (kind_of(index).cleanup)(index, &*info, !known.is_null());
        counts.map_or(known, |counts| vacuum::write(counts, known))
    })
}

/// Estimates for the planner what a scan of the index costs. The results go to the places after
/// `loops`, which says how often the scan is repeated with other keys.
#[pgrx::pg_guard]
#[allow(clippy::too_many_arguments, reason = "PostgreSQL's own signature")]
unsafe extern "C-unwind" fn amcostestimate(
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    loops: f64,
    startup: *mut pg_sys::Cost,
    total: *mut pg_sys::Cost,
    selectivity: *mut pg_sys::Selectivity,
    correlation: *mut f64,
    pages: *mut f64,
) {
    // SAFETY: PostgreSQL calls this; all results have a place.
    unsafe { Entry::new() }.run(|| unsafe {
        let planned = PlannedScan::new(root, path, loops);
        // Only operator classes over filters have a function that makes the key of an element.
        let estimate =
            (kind(planned.support_function(KEY_OF_ELEMENT).1.is_some()).estimate)(&planned);
        *startup = estimate.startup;
        *total = estimate.total;
        *selectivity = estimate.selectivity;
        // Rows come in the order of the bitmap, not in the one of the column's values.
        *correlation = 0.0;
        *pages = planned.index_pages;
    });
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amoptions(options: Datum, validate: bool) -> *mut pg_sys::bytea {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| or_raise(unsafe { options::parse(options, validate) }))
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amvalidate(class: pg_sys::Oid) -> bool {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| validate(class))
}

/// Refuses support functions that are added to a family later, also by another operator class. They
/// decide what an index keeps of a value, and how it is hashed: an index with a class of the family
/// would miss its rows from then on.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amadjustmembers(
    family: pg_sys::Oid,
    class: pg_sys::Oid,
    _operators: *mut pg_sys::List,
    functions: *mut pg_sys::List,
) {
    // SAFETY: PostgreSQL calls this; without functions there is no list.
    unsafe { Entry::new() }.run(|| {
        let is_new = class != pg_sys::InvalidOid && operators::family_operators(family).is_empty();
        if !is_new && !functions.is_null() {
            raise(unsupported(
                "support functions cannot be added to an operator family for access method bloom_filter",
                "Name them in CREATE OPERATOR CLASS, in a family of its own.",
            ));
        }
    });
}

/// Begins a scan with room for `keys` scan keys, the comparisons of the query with the column,
/// which `amrescan` then sets.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn ambeginscan(
    index: pg_sys::Relation,
    keys: i32,
    order: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| unsafe {
        let scan = pg_sys::RelationGetIndexScan(index, keys, order);
        scan::begin_counts(scan);
        scan
    })
}

/// Sets the scan keys of a scan for its next search. If `keys` is null, those that are set stay.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amrescan(
    scan: pg_sys::IndexScanDesc,
    keys: pg_sys::ScanKey,
    _nkeys: i32,
    _order: pg_sys::ScanKey,
    _norder: i32,
) {
    // SAFETY: PostgreSQL calls this; a scan has room for the keys that it was begun with.
    unsafe {
        if !keys.is_null() && (*scan).numberOfKeys > 0 {
            std::ptr::copy(keys, (*scan).keyData, (*scan).numberOfKeys as usize);
        }
    }
}

/// Searches the index with the keys of a scan: adds all rows and pages of the table that may match
/// to `bitmap`, and returns about how many rows these are.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amgetbitmap(
    scan: pg_sys::IndexScanDesc,
    bitmap: *mut pg_sys::TIDBitmap,
) -> i64 {
    // SAFETY: PostgreSQL calls this.
    unsafe { Entry::new() }.run(|| unsafe {
        let (index, mut rows) = (Relation::new((*scan).indexRelation), RowBatch::new(bitmap));
        index.count_scan();
        or_raise((kind_of(index).bitmap)(index, &keys(scan), &mut rows));
        let added = rows.added;
        scan::count_search(scan, &rows.finish());
        added
    })
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn amendscan(scan: pg_sys::IndexScanDesc) {
    // SAFETY: PostgreSQL calls this at the end of a scan that `ambeginscan` has begun.
    unsafe { Entry::new() }.run(|| unsafe { scan::end_counts(scan) });
}

pg_functions! {
    bloom_filter_handler => handler;
}
