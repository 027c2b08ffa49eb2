use super::*;

#[test]
fn rows_come_back_in_order() {
    let mut set = RowSet::default();
    let rows = [(0, 1), (0, 63), (0, 64), (3, 226), (3, 5), (3, 6), (4, 1), (u32::MAX - 1, 2047)];
    let mut rows = rows.map(|(page, line)| RowId { page, line });
    rows.iter().for_each(|row| set.add(*row, usize::MAX));
    rows.sort();
    assert!(set.iter().eq(rows));
}

#[test]
fn rows_beyond_the_memory_are_left_out() {
    let mut set = RowSet::default();
    (0..1000).for_each(|page| set.add(RowId { page, line: 1 }, 100));
    let kept: Vec<u32> = set.iter().map(|row| row.page).collect();
    assert!(set.bytes() <= 100 && kept.len() >= 5);
    assert!(kept.iter().copied().eq(0..kept.len() as u32));
}
