//! `bloom_set_expire`: drops what a set has forgotten.

use super::generations::refuse_in_recovery;
use super::table::{Purpose, Set};
use crate::pg::call::Call;
use crate::pg::call::error::{Error, Outcome, SqlState};
use crate::pg::catalog::owner;
use crate::pg::sql::{Sees, connected};
use crate::pg::storage::lock::Mode;
use pgrx::pg_sys::{self, Datum};

/// `bloom_set_expire(set)`: returns how many generations it dropped.
fn expire(call: &Call) -> Outcome {
    let Some(oid) = call.oid(0) else { return Ok(None) };
    let set = Set::open(call, oid, Purpose::Add)?;
    if set.parameters().keep.is_none() {
        let message = format!("filter set {} does not forget", set.quoted_name());
        return Err(Error::new(SqlState::ERRCODE_WRONG_OBJECT_TYPE, message)
            .detail("Only sets that were made with \"keep\" have something to drop."));
    }
    refuse_in_recovery(c"dropping what a filter set has forgotten");
    owner::require(oid, pg_sys::ACL_DELETE);
    let dropped = connected(|| {
        set.dropping().take(Mode::Exclusive);
        set.current_list(Sees::Now)?;
        if owner::may(oid, pg_sys::ACL_INSERT) && owner::may(oid, pg_sys::ACL_UPDATE) {
            set.end_if_due()?;
        }
        set.drop_leftover(&*set.current_list(Sees::Now)?)
    })?;
    Ok(Some(Datum::from(dropped as i32)))
}

pg_functions! {
    bloom_set_expire => expire;
}
