use super::*;

#[test]
fn bits_of_a_block_are_counted_slot_by_slot() {
    for bytes in [1, 4, 16] {
        let block: Vec<u8> = (0..510 * bytes)
            .map(|i| (i * i + i / 7) as u8 | u8::from(i % bytes == 0))
            .collect();
        let counted = ones_of(&block, bytes);
        for (slot, &ones) in counted.iter().enumerate() {
            let of_slot =
                |row: &[u8]| row.get(slot / 8).is_some_and(|byte| byte >> (slot % 8) & 1 == 1);
            assert_eq!(
                usize::from(ones),
                block.chunks(bytes).filter(|row| of_slot(row)).count(),
                "{bytes}, {slot}"
            );
        }
        assert_eq!(counted[0], 510);
    }
}
