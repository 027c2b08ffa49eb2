//! Chunks: the rows of a TOAST table in which a value out of line is stored, some 2 kB in each. The
//! table's index leads from the identifier of a value and the number of a chunk to the row:
//!
//! ```text
//! bytes 70,000 to 70,064 ──▶ chunk 35 ──▶ index: (value, 35) ──▶ row 3 of page 812 ──▶ page 812 is announced
//! ```

use super::toast::{Identity, external, is_compressed};
use crate::pg::storage::announce::{announce, io_concurrency};
use crate::pg::storage::relation::{ACCESS_SHARE, PAGE_BYTES, Relation};
use crate::pg::version;
use pgrx::pg_sys;
use std::mem::{MaybeUninit, offset_of};
use std::ops::Range;
use std::ptr::null_mut;

/// The most bytes of a row of a TOAST table: four of them fill a page (`EXTERN_TUPLE_MAX_SIZE`).
const MOST_ROW_BYTES: usize = {
    let rows_per_page = pg_sys::TOAST_TUPLES_PER_PAGE as usize;
    let header_bytes = offset_of!(pg_sys::PageHeaderData, pd_linp);
    let line_bytes = rows_per_page * size_of::<pg_sys::ItemIdData>();
    let rows_start = (header_bytes + line_bytes).next_multiple_of(ALIGNMENT);
    (PAGE_BYTES - rows_start) / rows_per_page / ALIGNMENT * ALIGNMENT
};
/// The alignment of rows in a page, and of the columns in a row (`MAXALIGN`).
const ALIGNMENT: usize = pg_sys::MAXIMUM_ALIGNOF as usize;
/// The bytes of a value that each of its chunks has, except the last one (`TOAST_MAX_CHUNK_SIZE`):
/// a row less its header, the value's identifier, the chunk's number and the length of the bytes.
const CHUNK_BYTES: usize = {
    let header_bytes = offset_of!(pg_sys::HeapTupleHeaderData, t_bits).next_multiple_of(ALIGNMENT);
    MOST_ROW_BYTES - header_bytes - size_of::<pg_sys::Oid>() - size_of::<i32>() - size_of::<u32>()
};
/// What `pg_controldata` shows of a server with pages of 8 kB.
const _: () = assert!(PAGE_BYTES != 8192 || CHUNK_BYTES == 1996);

/// The columns of the index of a TOAST table.
const VALUE_COLUMN: i16 = 1;
const CHUNK_COLUMN: i16 = 2;

/// Announces the pages of a TOAST table that have these ranges of bytes of a value: asks the
/// operating system to read them from disk, without waiting for them. `value` identifies a value out
/// of line. Waits only for pages of the table's index that aren't in memory.
///
/// Does nothing if the value is compressed, and if `effective_io_concurrency` of the table's
/// tablespace is 0. Chunks that aren't there any more are left out. Raises PostgreSQL's error if the
/// table is gone or has no valid index.
pub fn announce_slices(value: &Identity, slices: impl Iterator<Item = Range<usize>>) {
    let external = external(value);
    if is_compressed(&external) {
        return;
    }
    // SAFETY: the table is closed below, or by PostgreSQL if an error passes. It isn't locked for
    // longer than this, as when PostgreSQL fetches a value.
    unsafe {
        let table = pg_sys::table_open(external.va_toastrelid, ACCESS_SHARE);
        let relation = Relation::new(table);
        let is_toast_table = relation.kind() == pg_sys::RELKIND_TOASTVALUE && relation.is_heap();
        if is_toast_table && io_concurrency(relation) > 0 {
            announce_chunks(relation, external.va_valueid, slices);
        }
        pg_sys::table_close(table, ACCESS_SHARE);
    }
}

/// Announces the pages that have these ranges of bytes of the value with this identifier. Raises
/// PostgreSQL's error if the table has no valid index.
///
/// # Safety
/// The table must be a TOAST table of the access method `heap`.
unsafe fn announce_chunks(
    table: Relation,
    value: pg_sys::Oid,
    slices: impl Iterator<Item = Range<usize>>,
) {
    let pages = table.pages();
    // SAFETY: the table is open, and its index has the columns that these keys compare. What is
    // opened here is closed here, or by PostgreSQL if an error passes.
    unsafe {
        let mut keys = [
            scan_key(VALUE_COLUMN, pg_sys::BTEqualStrategyNumber, pg_sys::F_OIDEQ),
            scan_key(CHUNK_COLUMN, pg_sys::BTGreaterEqualStrategyNumber, pg_sys::F_INT4GE),
            scan_key(CHUNK_COLUMN, pg_sys::BTLessEqualStrategyNumber, pg_sys::F_INT4LE),
        ];
        let num_keys = keys.len() as i32;
        keys[0].sk_argument = value.into();

        let mut indexes = null_mut();
        let mut num_indexes = 0;
        let valid_index =
            pg_sys::toast_open_indexes(table.raw(), ACCESS_SHARE, &mut indexes, &mut num_indexes);
        let index = *indexes.add(valid_index as usize);
        let scan = version::begin_index_scan(table.raw(), index, num_keys);

        for slice in slices {
            let first_chunk = slice.start / CHUNK_BYTES;
            let last_chunk = slice.end.saturating_sub(1) / CHUNK_BYTES;
            keys[1].sk_argument = first_chunk.into();
            keys[2].sk_argument = last_chunk.into();
            pg_sys::index_rescan(scan, keys.as_mut_ptr(), num_keys, null_mut(), 0);

            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            while let Some(row) = pg_sys::index_getnext_tid(scan, forward).as_ref() {
                let block = row.ip_blkid;
                let page = u32::from(block.bi_hi) << 16 | u32::from(block.bi_lo);
                // A damaged index may name a page that the table doesn't have.
                if page < pages {
                    announce(table, page);
                }
            }
        }
        pg_sys::index_endscan(scan);
        pg_sys::toast_close_indexes(indexes, num_indexes, ACCESS_SHARE);
    }
}

/// Returns a scan key, with which a scan of a B-tree index compares a column: by the strategy and the
/// function of an operator. The value that the column is compared with is still missing.
fn scan_key(column: i16, strategy: u32, function: u32) -> pg_sys::ScanKeyData {
    let mut key = MaybeUninit::uninit();
    // SAFETY: the function sets all fields of the key.
    unsafe {
        let no_value = pg_sys::Datum::null();
        pg_sys::ScanKeyInit(key.as_mut_ptr(), column, strategy as u16, function.into(), no_value);
        key.assume_init()
    }
}
