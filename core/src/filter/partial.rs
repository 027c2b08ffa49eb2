//! The state of a build that one process passes to another: a filter in its stored form, or one of two forms that no
//! stored value has.
//!
//! ```text
//! blocks  capacity  payload
//! 0       0         hashes      an unsized build, exact
//! 2^e     0         bits        an unsized build with more blocks than it will need, to be folded in the end
//! ```

use super::check::{check_foldable, invalid};
use super::header::Capacity;
use super::view::{Body, View, check_contents, read};
use crate::error::Result;

/// A partial state that was validated, read in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Partial<'a>(View<'a>);

impl<'a> Partial<'a> {
    /// Reads a partial state.
    ///
    /// # Errors
    /// [`crate::Class::InvalidBinary`] for a value that no aggregate writes.
    pub fn parse(bytes: &'a [u8]) -> Result<Partial<'a>> {
        let view = read(bytes)?;
        check_contents(&view)?;
        match (view.header.capacity, view.body) {
            (Capacity::ToBeFolded, _) => check_foldable(&view.header)?,
            (Capacity::Unsized, Body::Sparse([])) if !view.header.kind.is_none() => {
                return Err(invalid("a filter of no size has a key kind but no elements"));
            }
            _ => {}
        }
        Ok(Partial(view))
    }

    /// Reads a value whose bytes [`Partial::parse`] accepted before, as [`View::parse_trusted`] does.
    ///
    /// # Errors
    /// As [`Partial::parse`].
    pub fn parse_trusted(bytes: &'a [u8]) -> Result<Partial<'a>> {
        Ok(Partial(read(bytes)?))
    }

    /// Header and elements. A view of no size may have hashes here.
    pub fn view(&self) -> &View<'a> {
        &self.0
    }
}
