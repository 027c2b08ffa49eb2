//! The rows on a page of a table, and the values of one column: of all row versions that are there,
//! visible or not, or of those that a sequential scan is about to return.
//!
//! This is the one room below the table access method. It relies on the layout of pages and rows of
//! PostgreSQL's own access method `heap`, and trusts none of their bytes: a damaged page may hide
//! its damaged rows, but never another row, and every loop over it ends.
//!
//! Nothing here decides about visibility: a row that a snapshot sees is on its page, on the same
//! line, as long as the snapshot is in use. Under SERIALIZABLE the scan of the index has a predicate
//! lock of the whole index, and PostgreSQL takes those of the rows when it reads them itself.
//!
//! | module | what it does |
//! |---|---|
//! | `bytes` | the fields of a page, its line pointers and its rows' headers |
//! | `chains` | which row versions belong together: HOT chains |
//! | `column` | where a column is in a row |
//! | `page` | all row versions of a page, with the values of a column |
//! | `scan` | the rows of the page that a sequential scan is at |

mod bytes;
mod chains;
mod column;
mod page;
mod scan;

pub use column::{ColumnValue, RowColumn};
pub use page::HeapPage;
pub use scan::{RowsOfScan, ScanPosition};
