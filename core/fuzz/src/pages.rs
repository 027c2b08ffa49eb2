//! Pages of an index that are not as they were written.

use crate::forge::Input;
use pg_bloom_core::index::chain;
use pg_bloom_core::index::page::memory::Memory;
use pg_bloom_core::index::page::{PageKind, PageSize, Special};

/// Changes bytes of pages, mostly of the metapage and these others, as the input says. Those get
/// checksums that fit.
pub fn damage(memory: &mut Memory, others: &[u32], page_bytes: usize, damage: &[u8]) {
    let mut input = Input(damage);
    let pages = [&[0], others].concat();
    while !input.0.is_empty() {
        let (which, at, value) =
            (input.byte(), usize::from(input.half()) % page_bytes, input.byte());
        let page = match which % 4 {
            3 => usize::from(which) % memory.pages.len(),
            _ => pages[usize::from(which) % pages.len()] as usize,
        };
        memory.pages[page][at] ^= value;
    }
    pages
        .iter()
        .for_each(|&page| chain::sign(&mut memory.pages[page as usize], size(page_bytes)));
}

fn size(page_bytes: usize) -> PageSize {
    PageSize::new(page_bytes).expect("a possible size")
}

/// Makes a metapage and pages of a directory of the bytes; `sign` writes what the metapage must say
/// in any case.
pub fn forge(bytes: &[u8], page_bytes: usize, sign: impl Fn(&mut [u8])) -> Memory {
    let mut memory = Memory::default();
    for (chunk, number) in bytes.chunks(page_bytes - 32).zip(0..) {
        let mut page = vec![0; page_bytes];
        page[24..24 + chunk.len()].copy_from_slice(chunk);
        let kind = if number == 0 { PageKind::Meta } else { PageKind::Directory };
        Special { kind, number: number.max(1) - 1 }.write(&mut page);
        if number == 0 {
            sign(&mut page);
        }
        chain::sign(&mut page, size(page_bytes));
        memory.pages.push(page);
    }
    memory
}
