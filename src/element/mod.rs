//! Elements: which SQL values may be added and looked for, and how they become hashes.
//!
//! | module | what it knows |
//! |---|---|
//! | `element_type` | a type of elements, resolved once for a call site; its key in a filter |
//! | `resolve` | what each type is as an element: how it is read, and its key kind |
//! | `scalar`, `jsonb` | from a datum to canonical bytes |
//! | `members` | the same for arrays, rows, ranges and multiranges |
//! | `hasher` | from an element to its hash in the filters of one key kind |
//! | `probe_key` | an element in a form with which any filter can be probed |
//! | `column` | a column of an index: what may be one, and what it may be compared with |

mod column;
mod element_type;
mod hasher;
pub mod jsonb;
mod members;
mod probe_key;
mod resolve;
mod scalar;

pub use column::{Column, HASH_SUPPORT};
pub use element_type::{
    ArgumentHashes, ElementArgument, ElementType, hashes_of_argument, out_of_range, parquet_tag,
};
pub use hasher::{Form, Hasher};
pub use probe_key::{HashForKind, ProbeKey};
pub use scalar::with_value;
