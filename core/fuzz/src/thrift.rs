//! Headers of filters in Parquet files (docs/format.md, section 12): written in every way that a
//! reader must take, and read by the plainest reader there is, which shares nothing with the one
//! that it judges.

use super::forge::Input;

/// The longest header that is read.
const MOST_HEADER: usize = 65_536;
/// How deep values that are passed over may nest.
const MOST_DEPTH: u32 = 64;
/// The codes of types that have a name here. All are 1 to 13.
const FALSE: u8 = 2;
const I32: u8 = 5;
const STRUCT: u8 = 12;
const TYPES: u8 = 13;

/// The header that is written before so many bytes of bits.
pub fn plain(bits: usize) -> Vec<u8> {
    let mut header = vec![0x15];
    push_varint(&mut header, 2 * bits as u64, 0);
    header.extend([0x1c, 0x1c, 0, 0].repeat(3));
    header.push(0);
    header
}

/// A number, seven bits per byte, in up to `longer` bytes more than it needs.
fn push_varint(out: &mut Vec<u8>, mut number: u64, longer: u8) {
    let needed = (64 - number.leading_zeros()).div_ceil(7).max(1);
    for _ in 1..(needed + u32::from(longer)).min(10) {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Writes a header as an input says.
pub struct Writer<'a, 'b> {
    input: &'b mut Input<'a>,
    out: Vec<u8>,
    /// How deep the deepest value nests.
    deepest: u32,
    /// Whether something was written that no reader need take.
    broken: bool,
}

impl<'a, 'b> Writer<'a, 'b> {
    /// A header before so many bytes of bits: the four fields in any order and some more than once,
    /// among fields that nobody knows. Says whether a reader must take it: nothing nests too deep,
    /// and no field is broken.
    pub fn header(input: &'b mut Input<'a>, bits: usize) -> (Vec<u8>, bool) {
        let mut writer = Writer { input, out: Vec::new(), deepest: 0, broken: false };
        let (mut last, mut right, mut unions) = (0, false, [false; 3]);
        for _ in 0..writer.input.byte() % 12 {
            let (what, choice) = (writer.input.byte() % 8, writer.input.byte());
            match what {
                0 => {
                    right = choice % 2 == 0;
                    let claimed =
                        if right { bits as i64 } else { i64::from(writer.input.number() as i32) };
                    writer.start(&mut last, 1, I32, choice & 4 > 0);
                    push_varint(&mut writer.out, zigzag(claimed), choice >> 4);
                }
                1..4 => {
                    writer.union(&mut last, i16::from(what) + 1, choice);
                    unions[usize::from(what) - 1] = true;
                }
                4 if choice >= 250 => writer.break_field(&mut last, choice),
                _ => {
                    let id = writer.input.half() as i16;
                    let id = if (1..=4).contains(&id) { id + 4 } else { id };
                    writer.field(&mut last, id, 1);
                }
            }
        }
        for id in (2..5).filter(|&id| !unions[id as usize - 2]) {
            writer.union(&mut last, id, 0);
        }
        if !right {
            writer.start(&mut last, 1, I32, false);
            push_varint(&mut writer.out, zigzag(bits as i64), 0);
        }
        writer.out.push(0);
        (writer.out, writer.deepest <= MOST_DEPTH && !writer.broken)
    }

    /// The start of a field: one byte, if its number lets it be and it need not be in full.
    fn start(&mut self, last: &mut i16, id: i16, wire_type: u8, in_full: bool) {
        match i32::from(id) - i32::from(*last) {
            more @ 1..=15 if !in_full => self.out.push((more as u8) << 4 | wire_type),
            _ => {
                self.out.push(wire_type);
                push_varint(&mut self.out, zigzag(id.into()), 0);
            }
        }
        *last = id;
    }

    /// A field that is wrong in a way of its own.
    fn break_field(&mut self, last: &mut i16, choice: u8) {
        self.broken = true;
        let number = self.input.number();
        match choice {
            // Of more bits than a number has, or than the field has.
            250 => {
                self.start(last, 9, 6, false);
                self.out.extend([0xff; 9]);
                push_varint(&mut self.out, number % 1000, 0);
            }
            251 => {
                self.start(last, 1, I32, false);
                push_varint(&mut self.out, number, 0);
            }
            // A field's own number of more than 16 bits, in full or in steps.
            252 => {
                self.out.push(4);
                push_varint(&mut self.out, number >> (number % 64), 0);
                self.out.push(0);
            }
            253 => {
                self.start(last, i16::MAX - (number % 20) as i16, 3, true);
                self.out.extend([0, 0xf1]);
            }
            // A type that nobody knows, and a known field of another type.
            254 => self.start(last, 9, [0, 14, 15][(number % 3) as usize], false),
            _ => {
                self.start(last, 1 + (number % 4) as i16, 1 + (number >> 8) as u8 % TYPES, false);
                self.out.push(0);
            }
        }
    }

    /// A union of which the first member is set, a struct of anything; now and then another or
    /// several, which breaks it.
    fn union(&mut self, last: &mut i16, id: i16, choice: u8) {
        self.start(last, id, STRUCT, choice & 1 > 0);
        let members: &[i16] = match choice {
            ..250 => &[1],
            252 => &[1, 2],
            253 => &[2],
            250 | 254 => &[1, 1],
            _ => &[],
        };
        self.broken |= members != [1];
        let mut last = 0;
        for &member in members {
            self.start(&mut last, member, STRUCT, choice & 2 > 0);
            if choice & 4 > 0 {
                self.value(STRUCT, 2);
            } else {
                self.out.push(0);
            }
        }
        self.out.push(0);
    }

    /// A field of any type.
    fn field(&mut self, last: &mut i16, id: i16, depth: u32) {
        let choice = self.input.byte();
        let wire_type = 1 + choice % TYPES;
        self.start(last, id, wire_type, choice > 128);
        // A boolean field is in its type.
        if wire_type > FALSE {
            self.value(wire_type, depth);
        }
    }

    /// A value of this type. When the input is at its end, so are all structs and lists.
    fn value(&mut self, wire_type: u8, depth: u32) {
        self.deepest = self.deepest.max(depth);
        match wire_type {
            1..=3 => self.out.push(self.input.byte()),
            4..=6 => {
                let (shift, number) = (self.input.byte(), self.input.number());
                push_varint(&mut self.out, number >> (shift % 64), shift >> 6);
            }
            7 => self.out.extend(self.input.number().to_le_bytes()),
            8 => {
                let wanted = self.input.byte();
                let bytes = self.input.take(wanted.into());
                push_varint(&mut self.out, bytes.len() as u64, wanted & 1);
                self.out.extend(bytes);
            }
            9 | 10 => {
                let (count, item) = (self.input.byte() % 20, 1 + self.input.byte() % TYPES);
                self.out.push(count.min(15) << 4 | item);
                if count >= 15 {
                    push_varint(&mut self.out, count.into(), 0);
                }
                (0..count).for_each(|_| self.value(item, depth + 1));
            }
            11 => {
                let (count, types) = (self.input.byte() % 5, self.input.byte());
                let [key, item] = [types >> 4, types & 15].map(|code| 1 + code % TYPES);
                push_varint(&mut self.out, count.into(), 0);
                if count > 0 {
                    self.out.push(key << 4 | item);
                }
                for _ in 0..count {
                    self.value(key, depth + 1);
                    self.value(item, depth + 1);
                }
            }
            STRUCT => {
                let mut last = 0i16;
                for _ in 0..self.input.byte() % 4 {
                    let id = last.wrapping_add(i16::from(self.input.byte() as i8));
                    self.field(&mut last, id, depth + 1);
                }
                self.out.push(0);
            }
            _ => self.out.extend(
                [self.input.number(), self.input.number()]
                    .iter()
                    .flat_map(|half| half.to_le_bytes()),
            ),
        }
    }
}

/// The bits of a file's filter; `None` if it is to be refused.
pub fn bits_of(file: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader(&file[..file.len().min(MOST_HEADER)]);
    let (mut claimed, mut unions) = (None, [false; 3]);
    reader.each_field(|reader, id, wire_type| match (id, wire_type) {
        (1, I32) => {
            let number = reader.varint()?;
            claimed = i32::try_from((number >> 1) as i64 ^ -((number & 1) as i64)).ok();
            claimed.map(drop)
        }
        (2..=4, STRUCT) => {
            unions[id as usize - 2] = true;
            let mut members = 0;
            reader.each_field(|reader, id, wire_type| {
                members += 1;
                if (id, wire_type) == (1, STRUCT) { reader.value(STRUCT, 2) } else { None }
            })?;
            (members == 1).then_some(())
        }
        (1..=4, _) => None,
        _ => reader.field(wire_type, 1),
    })?;
    let header = file.len().min(MOST_HEADER) - reader.0.len();
    let bits = &file[header..];
    let fits = claimed? > 0 && claimed? % 32 == 0 && claimed? as usize == bits.len();
    (fits && unions == [true; 3]).then_some(bits)
}

/// Passes over values, front to back.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.0.first()?;
        self.take(1)?;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u128;
        for place in 0..10 {
            let byte = self.byte()?;
            number |= u128::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return u64::try_from(number).ok();
            }
        }
        None
    }

    fn each_field(&mut self, mut each: impl FnMut(&mut Self, i16, u8) -> Option<()>) -> Option<()> {
        let mut id = 0i64;
        loop {
            let start = self.byte()?;
            if start == 0 {
                return Some(());
            }
            let more = i64::from(start >> 4);
            id = if more > 0 {
                id + more
            } else {
                let number = self.varint()?;
                (number >> 1) as i64 ^ -((number & 1) as i64)
            };
            each(self, i16::try_from(id).ok()?, start & 15)?;
        }
    }

    fn field(&mut self, wire_type: u8, depth: u32) -> Option<()> {
        if (1..=FALSE).contains(&wire_type) {
            Some(())
        } else {
            self.value(wire_type, depth)
        }
    }

    fn value(&mut self, wire_type: u8, depth: u32) -> Option<()> {
        if depth > MOST_DEPTH {
            return None;
        }
        match wire_type {
            1..=3 => self.take(1),
            4..=6 => self.varint().map(drop),
            7 => self.take(8),
            8 => {
                let length = self.varint()?;
                self.take(length)
            }
            9 | 10 => {
                let start = self.byte()?;
                let count = if start < 0xf0 { u64::from(start >> 4) } else { self.varint()? };
                (0..count).try_for_each(|_| self.value(start & 15, depth + 1))
            }
            11 => {
                let count = self.varint()?;
                let types = if count > 0 { self.byte()? } else { 0 };
                (0..count).try_for_each(|_| {
                    self.value(types >> 4, depth + 1)?;
                    self.value(types & 15, depth + 1)
                })
            }
            STRUCT => self.each_field(|reader, _, wire_type| reader.field(wire_type, depth + 1)),
            13 => self.take(16),
            _ => None,
        }
    }
}
