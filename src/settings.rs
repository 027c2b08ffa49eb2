//! The settings: `pg_bloom.default_fpr`, `pg_bloom.max_filter_size`, `pg_bloom.overfill`,
//! `pg_bloom.read_ahead`, `pg_bloom.heap_filter`.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};

/// What is done when a filter ends up with more elements than it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum Overfill {
    #[name = c"warn"]
    Warn,
    #[name = c"error"]
    Error,
    #[name = c"ignore"]
    Ignore,
}

pub static DEFAULT_FPR: GucSetting<f64> = GucSetting::<f64>::new(pg_bloom_core::DEFAULT_FPR);
static MAX_FILTER_SIZE: GucSetting<i32> = GucSetting::<i32>::new(256 * 1024);
pub static READ_AHEAD: GucSetting<bool> = GucSetting::<bool>::new(true);
pub static HEAP_FILTER: GucSetting<bool> = GucSetting::<bool>::new(true);
pub static OVERFILL: GucSetting<Overfill> = GucSetting::<Overfill>::new(Overfill::Warn);

/// Makes the settings of the extension known to PostgreSQL, and reserves the prefix `pg_bloom` for
/// them. To be called once, when the library is loaded.
pub fn define() {
    GucRegistry::define_float_guc(
        c"pg_bloom.default_fpr",
        c"False positive rate of bloom filters for which none is given.",
        c"Applies at a filter's capacity.",
        &DEFAULT_FPR,
        pg_bloom_core::sizing::least_fpr(pg_bloom_core::Layout::Blocked),
        pg_bloom_core::sizing::GREATEST_FPR,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_int_guc(
        c"pg_bloom.max_filter_size",
        c"Largest bloom filter that may be made.",
        c"Checked before anything is allocated. Larger filters that exist can be used at their own size.",
        &MAX_FILTER_SIZE,
        1,
        (pg_bloom_core::MAX_STORED_BYTES / 1024) as i32,
        GucContext::Suset,
        GucFlags::UNIT_KB,
    );
    GucRegistry::define_enum_guc(
        c"pg_bloom.overfill",
        c"What happens when a bloom filter ends up with more elements than its capacity.",
        c"One of warn, error and ignore.",
        &OVERFILL,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"pg_bloom.read_ahead",
        c"Whether sequential scans fetch memory ahead for the rows for which they probe a large bloom filter.",
        c"Plans and results stay the same.",
        &READ_AHEAD,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    GucRegistry::define_bool_guc(
        c"pg_bloom.heap_filter",
        c"Whether scans of an index read the pages that may have a key, to find its rows.",
        c"If not, all rows of these pages are compared by PostgreSQL.",
        &HEAP_FILTER,
        GucContext::Userset,
        GucFlags::EXPLAIN,
    );
    // SAFETY: the name is a C string; PostgreSQL copies it.
    unsafe { pgrx::pg_sys::MarkGUCPrefixReserved(c"pg_bloom".as_ptr()) };
}

/// The largest filter that may be made, in bytes as stored.
pub fn max_filter_bytes() -> u64 {
    MAX_FILTER_SIZE.get() as u64 * 1024
}
