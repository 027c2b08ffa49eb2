use super::*;

#[test]
fn rows_come_back_in_order() {
    let mut set = RowSet::new(usize::MAX);
    let rows = [
        (0, 1),
        (0, 63),
        (0, 64),
        (3, 226),
        (3, 5),
        (3, 6),
        (4, 1),
        (u32::MAX - 1, 2047),
    ];
    let mut rows = rows.map(|(page, line)| RowId { page, line });
    for row in rows {
        set.add(row);
    }

    let mut found: Vec<RowId> = set.iter().collect();
    assert!(found.is_sorted_by_key(|row| row.page));
    found.sort();
    rows.sort();
    assert_eq!(found, rows);
}

#[test]
fn rows_beyond_the_memory_are_left_out() {
    let most_bytes = 100;
    let mut set = RowSet::new(most_bytes);
    for page in 0..1000 {
        set.add(RowId { page, line: 1 });
    }

    let kept: Vec<u32> = set.iter().map(|row| row.page).collect();
    assert!(set.bytes() <= most_bytes);
    assert!(kept.len() >= 5);
    let first_pages: Vec<u32> = (0..kept.len() as u32).collect();
    assert_eq!(kept, first_pages);
}
