//! Values of SQL types.
//!
//! | module | what it is for |
//! |---|---|
//! | [`varlena`], [`toast`], [`chunks`] | values of variable length, those out of line, and the rows that those are stored in |
//! | [`array`](mod@array), [`range`], [`row`], [`row_type`] | values that are made of others |
//! | [`jsonpath`] | expressions of jsonpath |
//! | [`time`] | points in time, and intervals |
//! | [`encoding`] | text in the encoding of the database, and in UTF-8 |

pub mod array;
pub mod chunks;
pub mod encoding;
pub mod jsonpath;
pub mod range;
pub mod row;
pub mod row_type;
pub mod time;
pub mod toast;
pub mod varlena;
