use super::*;
use crate::Class;

fn hash_in(
    element: &Element<'_>,
    tag: Tag,
    layout: Layout,
) -> std::result::Result<Option<u64>, Class> {
    element
        .hash_in(Kind::unnamed(tag), layout)
        .map_err(|error| error.class())
}

#[test]
fn numbers_have_the_widths_of_parquet() {
    let parquet = |element: Element<'_>, tag| hash_in(&element, tag, Layout::Parquet);
    assert_eq!(parquet(7i64.into(), Tag::ParquetInt32), Ok(Some(hash(&7i32.to_le_bytes()))));
    assert_eq!(parquet(7i64.into(), Tag::ParquetInt64), Ok(Some(hash(&7i64.to_le_bytes()))));
    assert_eq!(parquet((1i64 << 31).into(), Tag::ParquetInt32), Ok(None));
    assert_eq!(parquet(1.5.into(), Tag::ParquetFloat), Ok(Some(hash(&1.5f32.to_le_bytes()))));
    assert_eq!(parquet(0.1.into(), Tag::ParquetFloat), Ok(None));
    assert_eq!(
        parquet(f64::NAN.into(), Tag::ParquetFloat),
        Ok(Some(hash(&scalar::float32(f32::NAN))))
    );
    assert_eq!(
        parquet("a".into(), Tag::ParquetByteArray),
        parquet(b"a".as_slice().into(), Tag::ParquetByteArray)
    );
    assert_eq!(parquet("a".into(), Tag::Text), Err(Class::KindMismatch));
    assert_eq!(hash_in(&7i64.into(), Tag::Text, Layout::Blocked), Err(Class::KindMismatch));
}

#[test]
fn arrays_are_whole_and_of_one_kind() {
    let array = |lengths: &[i32], members: Vec<Option<Element<'static>>>| {
        Array::new(lengths.to_vec(), members)
    };
    let class = |result: Result<Array<'_>>| result.map(drop).map_err(|error| error.class());
    // ARRAY[1, NULL], as docs/format.md writes it.
    let mut written = List::new();
    array(&[2], vec![Some(1i64.into()), None])
        .expect("an array")
        .write(&mut written);
    let hex: String = written.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "010000000200000001000000010800000000000000010000000000000000");
    assert_eq!(array(&[0], vec![]), array(&[], vec![]));
    let named = |members| {
        let array = array(&[1], vec![members]).expect("an array");
        let array = Element::from(array.or_of_kind(Kind::unnamed(Tag::Date)));
        array.kind(Layout::Blocked).to_string()
    };
    assert_eq!(named(None), "array of date");
    assert_eq!(named(Some(1i64.into())), "array of integer");
    assert_eq!(class(array(&[2], vec![None])), Err(Class::InvalidParameter));
    assert_eq!(class(array(&[], vec![None])), Err(Class::InvalidParameter));
    assert_eq!(class(array(&[i32::MAX; 6], vec![None])), Err(Class::InvalidParameter));
    assert_eq!(
        class(array(&[2], vec![Some(1i64.into()), Some("a".into())])),
        Err(Class::KindMismatch)
    );
    let inner = array(&[1], vec![Some(1i64.into())]).expect("an array");
    assert_eq!(class(array(&[1], vec![Some(inner.clone().into())])), Err(Class::InvalidParameter));
    let empty = Element::from(array(&[], vec![]).expect("an array"));
    let kind = Element::from(inner);
    assert!(
        empty
            .hash_in(kind.kind(Layout::Blocked), Layout::Blocked)
            .is_ok_and(|hash| hash.is_some())
    );
}
