//! Regular expressions: the automaton that PostgreSQL compiles one to, as it exports that
//! (regex/regexport.h).

use crate::pg::call::guard::{guard, raw};
use crate::pg::call::interrupt;
use pg_bloom_core::conditions::automaton::{Automaton, Transition};
use pg_bloom_core::memory;
use pgrx::pg_sys::{self, Oid};
use std::ffi::{c_int, c_void};

/// What `~` and `~*` compile an expression with: advanced expressions without groups.
const FLAGS: c_int = 0o23;
const IGNORE_CASE: c_int = 0o10;
/// States of an automaton, and arcs, beyond which nothing is said.
const MOST_STATES: c_int = 10_000;
const MOST_ARCS: usize = 200_000;
/// Characters of a color, likewise: those of a class are many.
const MOST_CHARACTERS: c_int = 64;

// None of these raises an error: they look up a number.
unsafe extern "C" {
    fn pg_reg_getnumstates(regex: *const c_void) -> c_int;
    fn pg_reg_getinitialstate(regex: *const c_void) -> c_int;
    fn pg_reg_getfinalstate(regex: *const c_void) -> c_int;
    fn pg_reg_getnumcolors(regex: *const c_void) -> c_int;
    fn pg_reg_getnumcharacters(regex: *const c_void, color: c_int) -> c_int;
    fn pg_reg_getcharacters(regex: *const c_void, color: c_int, characters: *mut u32, room: c_int);
}

/// The automaton of an expression; `None` if it is large. Raises PostgreSQL's error for an invalid
/// one.
///
/// # Safety
/// The expression must be a text that is whole and uncompressed.
pub unsafe fn automaton(
    expression: *mut pg_sys::varlena,
    ignore_case: bool,
    collation: Oid,
) -> Option<Automaton> {
    let flags = FLAGS | if ignore_case { IGNORE_CASE } else { 0 };
    // SAFETY: promised by the caller; lists have room for as many. What is compiled stays in
    // PostgreSQL's cache until it compiles another one, which nothing here does.
    unsafe {
        let regex = guard(|| raw::RE_compile_and_cache(expression, flags, collation)).cast_const();
        let count = pg_reg_getnumstates(regex);
        if count > MOST_STATES {
            return None;
        }
        // `None` where they are not known, or many, and for the start and the end of a text.
        let characters = |color| {
            let count = pg_reg_getnumcharacters(regex, color);
            if !(0..=MOST_CHARACTERS).contains(&count) {
                return None;
            }
            let mut characters: Vec<u32> = memory::zeroed(count as usize);
            pg_reg_getcharacters(regex, color, characters.as_mut_ptr(), count);
            Some(characters)
        };
        let mut colors = memory::collect((0..pg_reg_getnumcolors(regex)).map(characters));
        // For arcs of any character, which have no color (`COLOR_RAINBOW`).
        memory::push(&mut colors, None);
        let (mut transitions, mut most) = (memory::with_capacity(count as usize), MOST_ARCS);
        for state in 0..count {
            interrupt::check_for_interrupts();
            let of_state = arcs_of(regex, state, colors.len(), count as usize);
            most = most.checked_sub(of_state.len())?;
            memory::push(&mut transitions, of_state);
        }
        let state =
            |number: c_int| usize::try_from(number).ok().filter(|&state| state < count as usize);
        let (initial, last) =
            (state(pg_reg_getinitialstate(regex))?, state(pg_reg_getfinalstate(regex))?);
        Some(Automaton { transitions, colors, initial, last })
    }
}

/// The transitions out of a state, which PostgreSQL calls arcs. Raises PostgreSQL's error if the
/// stack ends.
///
/// # Safety
/// The expression must be compiled and have the state.
unsafe fn arcs_of(
    regex: *const c_void,
    state: c_int,
    colors: usize,
    states: usize,
) -> Vec<Transition> {
    // SAFETY: promised by the caller; the list has room for as many.
    let arcs = unsafe {
        let count = guard(|| raw::pg_reg_getnumoutarcs(regex, state));
        let mut arcs: Vec<[c_int; 2]> = memory::zeroed(count.max(0) as usize);
        let first = arcs.as_mut_ptr();
        guard(|| raw::pg_reg_getoutarcs(regex, state, first, count));
        arcs
    };
    memory::collect(arcs.into_iter().map(|[color, to]| {
        let (color, to) = (usize::try_from(color).unwrap_or(colors - 1), to as usize);
        assert!(color < colors && to < states, "an arc of an automaton");
        Transition { color, to }
    }))
}
