use super::*;
use crate::interrupt::STRIDE_BYTES;

#[test]
fn zeroed_lists_have_the_length_that_was_asked_for() {
    assert_eq!(zeroed::<u8>(0), []);
    let several_strides = 3 * STRIDE_BYTES + 5;
    assert_eq!(zeroed::<u8>(several_strides), vec![0; several_strides]);
}

#[test]
fn a_copy_of_several_strides_is_equal() {
    let bytes: Vec<u8> = (0..2 * STRIDE_BYTES + 1).map(|i| i as u8).collect();
    assert_eq!(copy(&bytes), bytes);
}

#[test]
fn items_are_collected_in_order() {
    assert_eq!(collect([1, 2, 3].into_iter()), [1, 2, 3]);

    let mut pushed = Vec::new();
    for i in 0..1000 {
        push(&mut pushed, i);
    }
    assert!(pushed.into_iter().eq(0..1000));
}

#[test]
fn collecting_ends_with_the_first_error() {
    let items = [Ok(1), Err("first"), Err("second"), Ok(3)];
    assert_eq!(try_collect(items.into_iter()), Err("first"));
}

#[test]
fn without_memory_the_hook_gets_the_number_of_bytes() {
    set_hook(|bytes| std::panic::panic_any(bytes));

    let zeros = std::panic::catch_unwind(|| zeroed::<u8>(isize::MAX as usize));
    let refused_bytes = zeros.expect_err("memory was refused").downcast::<usize>();
    assert_eq!(*refused_bytes.expect("a number of bytes"), isize::MAX as usize);

    // The number of bytes would be larger than a usize.
    let list = std::panic::catch_unwind(|| with_capacity::<u64>(usize::MAX / 4));
    let refused_bytes = list.expect_err("memory was refused").downcast::<usize>();
    assert_eq!(*refused_bytes.expect("a number of bytes"), usize::MAX);
}
