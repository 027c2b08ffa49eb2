use super::*;
use crate::canonical::scalar;
use crate::memory::List;

/// The canonical bytes that `write` writes, in hexadecimal.
fn hex(write: impl FnOnce(&mut List<u8>)) -> String {
    let mut bytes = List::new();
    write(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn frames_are_frozen() {
    // ARRAY[1, NULL]
    let array = hex(|into| {
        write_array_start([(2, 1)].into_iter(), into);
        write_value(&scalar::integer(1), into);
        write_null(into);
    });
    assert_eq!(array, "010000000200000001000000010800000000000000010000000000000000");
    // An empty array.
    assert_eq!(hex(|into| super::write_array_start([].into_iter(), into)), "00000000");
    // A row of 'é' and an empty array.
    let row = hex(|into| {
        write_value("é".as_bytes(), into);
        write_composite_start(into);
        super::write_array_start([].into_iter(), into);
    });
    assert_eq!(row, "010200000000000000c3a90100000000");
    // A multirange of (,2).
    let multirange = hex(|into| {
        write_multirange_start(1, into);
        into.write(&[flags::NO_LOWER]);
        write_value(&scalar::integer(2), into);
    });
    assert_eq!(multirange, "01000000080108000000000000000200000000000000");
}
