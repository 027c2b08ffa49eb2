//! Regular expressions as PostgreSQL compiles them: the automaton, as it is exported
//! (regex/regexport.h).

use crate::pg::call::guard::{guard, raw};
use pg_bloom_core::memory::List;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_int, c_void};

/// The flags with which PostgreSQL compiles expressions for its operators `~` and `~*`, without
/// groups: `REG_ADVANCED` (03) and `REG_NOSUB` (020).
const FLAGS: c_int = 0o23;
const IGNORE_CASE: c_int = 0o10;

/// A regular expression that PostgreSQL has compiled. States and colors are numbered from 0.
pub struct CompiledRegex {
    regex: *const c_void,
}

/// A transition of an automaton: it leads to another state by a character of a color.
pub struct RegexArc {
    /// `None`: any character.
    pub color: Option<usize>,
    /// The number of the state that it leads to.
    pub to: usize,
}

impl CompiledRegex {
    /// Compiles an expression as the operator `~` does, or as `~*` if `ignore_case` is true. Raises
    /// 2201B if the expression is invalid.
    ///
    /// # Safety
    /// `expression` must be a text in the memory of this process that is not compressed. No other
    /// expression may be compiled as long as the result is used: PostgreSQL keeps the compiled ones
    /// in a cache.
    pub unsafe fn of(
        expression: *mut pg_sys::varlena,
        ignore_case: bool,
        collation: Oid,
    ) -> CompiledRegex {
        let flags = FLAGS | if ignore_case { IGNORE_CASE } else { 0 };
        // SAFETY: the expression is a whole text, as the caller promises.
        let regex = unsafe { guard(|| raw::RE_compile_and_cache(expression, flags, collation)) };
        CompiledRegex { regex: regex.cast_const() }
    }

    /// Returns the number of states of the automaton.
    pub fn num_states(&self) -> usize {
        // SAFETY: the expression is compiled, and still in PostgreSQL's cache.
        unsafe { pg_reg_getnumstates(self.regex) as usize }
    }

    /// Returns the number of the state before the first character.
    pub fn initial_state(&self) -> usize {
        // SAFETY: the expression is compiled, and still in PostgreSQL's cache.
        unsafe { pg_reg_getinitialstate(self.regex) as usize }
    }

    /// Returns the number of the state after a match.
    pub fn final_state(&self) -> usize {
        // SAFETY: the expression is compiled, and still in PostgreSQL's cache.
        unsafe { pg_reg_getfinalstate(self.regex) as usize }
    }

    /// Returns the number of colors, classes of characters that the automaton doesn't distinguish.
    pub fn num_colors(&self) -> usize {
        // SAFETY: the expression is compiled, and still in PostgreSQL's cache.
        unsafe { pg_reg_getnumcolors(self.regex) as usize }
    }

    /// Returns the characters of a color, a class of characters that the automaton doesn't
    /// distinguish. `None` if there are more than `most`, if PostgreSQL doesn't list them, as for
    /// characters from U+0800 on, and for the color that stands for the start or the end of a text.
    pub fn characters(&self, color: usize, most: usize) -> Option<List<u32>> {
        let color = color as c_int;
        // SAFETY: the expression is compiled; a number that isn't a color's has no characters.
        let count = unsafe { pg_reg_getnumcharacters(self.regex, color) };
        let count = usize::try_from(count).ok().filter(|&count| count <= most)?;
        let mut characters: List<u32> = List::zeroed(count);
        // SAFETY: the list has room for as many characters as it is said to have.
        unsafe {
            let room = count as c_int;
            pg_reg_getcharacters(self.regex, color, characters.as_mut_ptr(), room);
        }
        Some(characters)
    }

    /// Returns the arcs out of a state of the automaton. An arc has a *color*, a class of
    /// characters that the automaton doesn't distinguish, and the state that follows after a
    /// character of this color. Raises 54001 if the stack is too small for the expression.
    pub fn arcs(&self, state: usize) -> List<RegexArc> {
        let state = state as c_int;
        // SAFETY: the expression is compiled; a number that isn't a state's has no arcs. The list
        // has room for as many as it is said to have.
        let arcs = unsafe {
            let count = guard(|| raw::pg_reg_getnumoutarcs(self.regex, state));
            let mut arcs: List<[c_int; 2]> = List::zeroed(count.max(0) as usize);
            let first = arcs.as_mut_ptr();
            guard(|| raw::pg_reg_getoutarcs(self.regex, state, first, count));
            arcs
        };
        arcs.into_iter()
            .map(|[color, to]| RegexArc { color: usize::try_from(color).ok(), to: to as usize })
            .collect()
    }
}

// None of these raises an error: they look up a number.
unsafe extern "C" {
    fn pg_reg_getnumstates(regex: *const c_void) -> c_int;
    fn pg_reg_getinitialstate(regex: *const c_void) -> c_int;
    fn pg_reg_getfinalstate(regex: *const c_void) -> c_int;
    fn pg_reg_getnumcolors(regex: *const c_void) -> c_int;
    fn pg_reg_getnumcharacters(regex: *const c_void, color: c_int) -> c_int;
    fn pg_reg_getcharacters(regex: *const c_void, color: c_int, characters: *mut u32, room: c_int);
}
