use super::*;
use crate::index::ranges::SlotTarget;

#[test]
fn no_element_has_more_bits() {
    for bytes in [1024, 2048, 4096, 8192, 16384, 32768] {
        let size = PageSize::new(bytes).unwrap();
        let needed = SlotTarget::for_rate(size, 0.5f64.powi(32)).bits_per_key;
        assert!(
            needed <= most_bits_per_key(size)
                && (bytes > 8192 || needed > 0.98 * most_bits_per_key(size)),
            "{needed}"
        );
    }
}
