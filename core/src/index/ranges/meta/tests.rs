use super::*;
use crate::index::ranges::target;

#[test]
fn no_element_has_more_bits() {
    for bytes in [1024, 2048, 4096, 8192, 16384, 32768] {
        let size = PageSize::new(bytes).unwrap();
        let needed = target(size, 0.5f64.powi(32)).bits;
        assert!(
            needed <= most_bits(size) && (bytes > 8192 || needed > 0.98 * most_bits(size)),
            "{needed}"
        );
    }
}
