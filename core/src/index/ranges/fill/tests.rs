use super::*;

#[test]
fn bits_of_a_block_are_counted_column_by_column() {
    for row_bytes in [1, 4, 16] {
        let rows: Vec<u8> = (0..510 * row_bytes)
            .map(|i| (i * i + i / 7) as u8 | u8::from(i % row_bytes == 0))
            .collect();
        let counted = ones_per_column(&rows, row_bytes);
        for (column, &ones) in counted.iter().enumerate() {
            let has_bit =
                |row: &[u8]| row.get(column / 8).is_some_and(|byte| byte >> (column % 8) & 1 == 1);
            let expected = rows.chunks(row_bytes).filter(|row| has_bit(row)).count();
            assert_eq!(usize::from(ones), expected, "column {column} of {row_bytes} bytes");
        }
        // Each row has the first bit.
        assert_eq!(counted[0], 510);
    }
}
