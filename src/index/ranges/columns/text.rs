//! A column of texts: the keys of one are the hashes of its windows.

use super::class::Strategy;
use crate::element::Column;
use crate::pg::call::Result;
use crate::pg::regex;
use crate::pg::storage::relation::Relation;
use crate::pg::value::encoding;
use crate::pg::value::varlena::{PgBuffer, Value};
use pg_bloom_core::conditions::Condition;
use pg_bloom_core::conditions::stand_ins::StandIns;
use pg_bloom_core::conditions::text::{self, Encoding};
use pgrx::pg_sys::{self, Oid};

/// What decides the windows of texts, and what a pattern means.
pub struct TextColumn {
    pub encoding: Encoding,
    /// That of the column, under which the operators of the query compare.
    collation: Oid,
}

impl TextColumn {
    /// The column of an index. Its type may have been altered to one with the same bytes, such as
    /// citext: it is read as text. 0A000 for a collation that can't be in an index.
    pub fn of(relation: Relation) -> Result<TextColumn> {
        let (_, _, collation) = relation.column_class();
        Column::new(relation.handler(), pg_sys::TEXTOID, collation)?;
        let encoding = if encoding::is_utf8() { Encoding::Utf8 } else { Encoding::Other };
        Ok(TextColumn { encoding, collation })
    }

    /// What the windows of a text must be for which an operator holds with this text.
    pub fn condition(&self, strategy: Strategy, asked: &Value) -> Condition {
        match strategy {
            Strategy::Like => text::like(asked, self.encoding, false),
            Strategy::LikeIgnoringCase => text::like(asked, self.encoding, true),
            Strategy::Regex => self.matching(asked, false),
            Strategy::RegexIgnoringCase => self.matching(asked, true),
            _ => text::having(asked, self.encoding),
        }
    }

    /// What the windows of a text must be in which a regular expression has a match.
    fn matching(&self, expression: &Value, ignore_case: bool) -> Condition {
        let stand_ins = match self.encoding {
            Encoding::Utf8 => StandIns::new(expression, ignore_case),
            Encoding::Other => None,
        };
        let replaced = stand_ins
            .as_ref()
            .map(|stand_ins| PgBuffer::copy_of(&stand_ins.pattern).into_datum());
        let pointer = replaced.map_or(expression.pointer(), |datum| datum.cast_mut_ptr());
        // SAFETY: either is a text in the memory of the call.
        let Some(mut automaton) =
            (unsafe { regex::automaton(pointer, ignore_case, self.collation) })
        else {
            return Condition::Unknown;
        };
        if let Some(stand_ins) = &stand_ins {
            automaton
                .colors
                .iter_mut()
                .flatten()
                .flatten()
                .for_each(|c| *c = stand_ins.original(*c));
        }
        automaton.condition(self.encoding)
    }
}
