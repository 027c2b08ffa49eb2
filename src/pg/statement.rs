//! Statements of SQL with the rights of the caller. What they name must be qualified: search_path is the caller's as
//! well.

use super::error::{Error, Result, SqlState};
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// Executes a statement that returns no rows, given in parts in the encoding of the database, with parameters of these
/// types.
///
/// # Errors
/// Those of the statement; XX000 if it can't be executed from a function.
pub fn execute(sql: &[&[u8]], parameters: &[(pg_sys::Oid, pg_sys::Datum)]) -> Result<()> {
    let sql = CString::new(sql.concat()).map_err(|_| failed(0))?;
    let mut types: Vec<pg_sys::Oid> = parameters.iter().map(|&(oid, _)| oid).collect();
    let mut values: Vec<pg_sys::Datum> = parameters.iter().map(|&(_, value)| value).collect();
    // SAFETY: within a transaction; as many types as values, none of which is NULL.
    unsafe {
        check(pg_sys::SPI_connect())?;
        check(pg_sys::SPI_execute_with_args(
            sql.as_ptr(),
            parameters.len() as i32,
            types.as_mut_ptr(),
            values.as_mut_ptr(),
            std::ptr::null(),
            false,
            0,
        ))?;
        check(pg_sys::SPI_finish())
    }
}

fn check(code: i32) -> Result<()> {
    if code < 0 { Err(failed(code)) } else { Ok(()) }
}

#[cold]
fn failed(code: i32) -> Error {
    Error::new(SqlState::ERRCODE_INTERNAL_ERROR, format!("statement could not be executed: {code}"))
}

/// Where a table is to be made.
pub struct NewName {
    schema: pg_sys::Oid,
    /// The name.
    name: CString,
}

impl NewName {
    /// What somebody wrote as the name of a new table, with or without its schema: quoted as identifiers are.
    ///
    /// # Errors
    /// 42602 for what is no name; 3F000 for a schema that is not there, or none to make it in.
    pub fn parse(name: pg_sys::Datum) -> NewName {
        // SAFETY: the datum is a text; the range variable has a name that ends in a zero byte.
        unsafe {
            let list = pg_sys::textToQualifiedNameList(pg_sys::pg_detoast_datum(name.cast_mut_ptr()));
            let range = pg_sys::makeRangeVarFromNameList(list);
            let schema = pg_sys::RangeVarGetCreationNamespace(range);
            NewName { schema, name: CStr::from_ptr((*range).relname).to_owned() }
        }
    }

    /// The name as SQL writes it, with its schema.
    pub fn qualified(&self) -> Vec<u8> {
        [&namespace(self.schema), &b"."[..], &identifier(&self.name)].concat()
    }

    /// The table that has this name now, if there is one.
    pub fn relation(&self) -> Option<pg_sys::Oid> {
        // SAFETY: reads the catalog.
        let oid = unsafe { pg_sys::get_relname_relid(self.name.as_ptr(), self.schema) };
        (oid != pg_sys::InvalidOid).then_some(oid)
    }
}

/// A name as SQL writes it.
fn identifier(name: &CStr) -> Vec<u8> {
    // SAFETY: the result is a C string: the name itself, or one in the memory of this call.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())) }.to_bytes().to_vec()
}

/// The name of a schema as SQL writes it.
pub fn namespace(oid: pg_sys::Oid) -> Vec<u8> {
    // SAFETY: the result is null or a C string in the memory of this call.
    unsafe {
        let name = pg_sys::get_namespace_name(oid);
        if name.is_null() { Vec::new() } else { identifier(CStr::from_ptr(name)) }
    }
}
