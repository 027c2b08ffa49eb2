use super::*;

#[test]
fn lists_are_what_was_asked_for() {
    assert_eq!(
        zeroed::<u8>(3 * interrupt::STRIDE_BYTES + 5),
        vec![0u8; 3 * interrupt::STRIDE_BYTES + 5]
    );
    assert_eq!(zeroed::<u8>(0), []);
    let bytes: Vec<u8> = (0..2 * interrupt::STRIDE_BYTES + 1).map(|i| i as u8).collect();
    assert_eq!(copy(&bytes), bytes);
    assert_eq!(collect([1, 2, 3].into_iter()), [1, 2, 3]);
    assert_eq!(try_collect([Ok(1), Err("no"), Ok(3)].into_iter()), Err("no"));
    let mut list = Vec::new();
    (0..1000).for_each(|i| push(&mut list, i));
    assert!(list.iter().copied().eq(0..1000));
}

#[test]
fn too_much_is_refused_by_unwinding() {
    set_hook(|bytes| std::panic::panic_any(bytes));
    let refused = |ask: fn()| {
        *std::panic::catch_unwind(ask)
            .expect_err("refused")
            .downcast::<usize>()
            .expect("bytes")
    };
    assert_eq!(refused(|| drop(zeroed::<u8>(isize::MAX as usize))), isize::MAX as usize);
    assert_eq!(refused(|| drop(with_capacity::<u64>(usize::MAX / 4))), usize::MAX);
}
