use super::*;
use crate::interrupt::STRIDE_BYTES;

#[test]
fn zeroed_lists_have_the_length_that_was_asked_for() {
    assert_eq!(List::<u8>::zeroed(0), []);
    let several_strides = 3 * STRIDE_BYTES + 5;
    assert_eq!(List::<u8>::zeroed(several_strides), vec![0; several_strides]);
}

#[test]
fn a_copy_of_several_strides_is_equal() {
    let bytes: Vec<u8> = (0..2 * STRIDE_BYTES + 1).map(|i| i as u8).collect();
    assert_eq!(List::copy_of(&bytes), bytes);
}

#[test]
fn items_are_collected_in_order() {
    assert_eq!([1, 2, 3].into_iter().collect::<List<_>>(), [1, 2, 3]);

    let of_unknown_length = (0..1000).filter(|i| i % 3 == 0);
    assert_eq!(
        of_unknown_length.clone().collect::<List<_>>(),
        of_unknown_length.collect::<Vec<_>>()
    );

    let mut pushed = List::new();
    for i in 0..1000 {
        pushed.push(i);
    }
    assert!(pushed.into_iter().eq(0..1000));
}

#[test]
fn collecting_ends_with_the_first_error() {
    let items = [Ok(1), Err("first"), Err("second"), Ok(3)];
    assert_eq!(items.into_iter().collect::<Result<List<_>, _>>(), Err("first"));
}

#[test]
fn lists_do_what_vectors_do() {
    let mut list = List::from([3, 1, 1, 4]);
    let mut vector = vec![3, 1, 1, 4];
    let both = |list: &List<i32>, vector: &Vec<i32>| assert_eq!(list, vector);

    list.extend([1, 5, 9]);
    vector.extend([1, 5, 9]);
    both(&list, &vector);
    list.extend(&[2, 6]);
    vector.extend(&[2, 6]);
    both(&list, &vector);
    list.extend((0..9).filter(|i| i % 2 == 0));
    vector.extend((0..9).filter(|i| i % 2 == 0));
    both(&list, &vector);
    assert_eq!(list.split_off(8), vector.split_off(8));
    both(&list, &vector);
    list.resize(12, 7);
    vector.resize(12, 7);
    both(&list, &vector);
    list.dedup();
    vector.dedup();
    both(&list, &vector);
    assert!(list.drain(1..3).eq(vector.drain(1..3)));
    both(&list, &vector);
    list.resize(2, 7);
    vector.resize(2, 7);
    both(&list, &vector);
    assert_eq!(list.clone(), vector);
}

#[test]
fn a_list_and_a_vector_become_each_other_without_a_copy() {
    let vector = vec![1, 2, 3];
    let first_item = vector.as_ptr();
    let list = List::from(vector);
    assert_eq!(list.as_ptr(), first_item);
    let vector = Vec::from(list);
    assert_eq!(vector.as_ptr(), first_item);
}

/// Returns the number of bytes that the hook gets when memory is refused.
fn refused_bytes<T>(allocate: impl FnOnce() -> List<T> + std::panic::UnwindSafe) -> usize {
    set_hook(|bytes| std::panic::panic_any(bytes));
    let refusal = std::panic::catch_unwind(|| allocate().len()).expect_err("memory was refused");
    *refusal.downcast().expect("a number of bytes")
}

#[test]
fn without_memory_the_hook_gets_the_number_of_bytes() {
    const TOO_MANY: usize = isize::MAX as usize;
    assert_eq!(refused_bytes(|| List::<u8>::zeroed(TOO_MANY)), TOO_MANY);
    assert_eq!(refused_bytes(|| List::filled(1u8, TOO_MANY)), TOO_MANY);
    assert_eq!(refused_bytes(|| std::iter::repeat_n(1u8, TOO_MANY).collect()), TOO_MANY);

    let grown = |grow: fn(&mut List<u8>)| {
        refused_bytes(move || {
            let mut list = List::from([1]);
            grow(&mut list);
            list
        })
    };
    assert_eq!(grown(|list| list.reserve_exact(TOO_MANY)), TOO_MANY + 1);
    assert_eq!(grown(|list| list.resize(TOO_MANY, 0)), TOO_MANY);
    assert_eq!(grown(|list| list.resize_with(TOO_MANY, || 0)), TOO_MANY);
    assert_eq!(grown(|list| list.extend(std::iter::repeat_n(1, TOO_MANY))), TOO_MANY + 1);

    // The number of bytes would be larger than a usize.
    assert_eq!(refused_bytes(|| List::<u64>::with_capacity(usize::MAX / 4)), usize::MAX);
    assert!(List::<u64>::try_with_capacity(usize::MAX / 4).is_none());
}
