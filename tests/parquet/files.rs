//! Parquet files, by the crate `parquet`.

use crate::plain::{COLUMNS, Column, Plain};
use parquet::basic::Type;
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::properties::{ReaderProperties, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::serialized_reader::ReadOptionsBuilder;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The column chunks of a file: row group, column, the physical type, the bytes of the filter and
/// the other program's reading.
pub fn chunks(path: &Path) -> Vec<(usize, &'static Column, Type, Vec<u8>, Sbbf)> {
    let bytes = std::fs::read(path).expect("the file is there");
    let properties = ReaderProperties::builder().set_read_bloom_filter(true).build();
    let options = ReadOptionsBuilder::new().with_reader_properties(properties).build();
    let file = File::open(path).expect("the file is there");
    let reader = SerializedFileReader::new_with_options(file, options).expect("a Parquet file");
    let mut chunks = Vec::new();
    for group in 0..reader.num_row_groups() {
        let rows: Box<dyn RowGroupReader + '_> =
            reader.get_row_group(group).expect("it has this row group");
        for (i, chunk) in rows.metadata().columns().iter().enumerate() {
            let name = chunk.column_path().string();
            let column = COLUMNS
                .iter()
                .find(|column| column.name == name)
                .expect("a column of the list");
            let from = chunk.bloom_filter_offset().expect("it has a filter") as usize;
            let length = chunk.bloom_filter_length().expect("its length is known") as usize;
            let filter = rows.get_column_bloom_filter(i).expect("it has a filter").clone();
            chunks.push((
                group,
                column,
                chunk.column_type(),
                bytes[from..from + length].to_vec(),
                filter,
            ));
        }
    }
    chunks
}

/// Writes a file with these values in each column, in two row groups.
pub fn write_file(path: &Path, columns: &[(&Column, Vec<Plain>)], fpp: f64, ndv: u64) {
    let fields: String = columns
        .iter()
        .map(|(column, _)| format!("REQUIRED {};\n", column.schema))
        .collect();
    let schema = Arc::new(
        parse_message_type(&format!("message elements {{ {fields} }}")).expect("a schema"),
    );
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_bloom_filter_enabled(true)
        .set_bloom_filter_fpp(fpp)
        .set_bloom_filter_max_ndv(ndv)
        .build();
    let file = File::create(path).expect("a new file");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).expect("a writer");
    for half in 0..2 {
        let mut group = writer.next_row_group().expect("a row group");
        for (_, values) in columns {
            let middle = values.len() / 2;
            let values = if half == 0 { &values[..middle] } else { &values[middle..] };
            let mut column = group
                .next_column()
                .expect("one more column")
                .expect("one more column");
            write_column(column.untyped(), values);
            column.close().expect("the column is written");
        }
        group.close().expect("the row group is written");
    }
    writer.close().expect("the file is written");
}

fn write_column(writer: &mut ColumnWriter<'_>, values: &[Plain]) {
    macro_rules! write {
        ($writer:expr, $variant:ident, $convert:expr) => {{
            let values: Vec<_> = values
                .iter()
                .map(|value| match value {
                    Plain::$variant(x) => $convert(x.clone()),
                    other => panic!("{other:?} in such a column"),
                })
                .collect();
            $writer.write_batch(&values, None, None).map(drop)
        }};
    }
    match writer {
        ColumnWriter::Int32ColumnWriter(writer) => write!(writer, Int32, |x| x),
        ColumnWriter::Int64ColumnWriter(writer) => write!(writer, Int64, |x| x),
        ColumnWriter::FloatColumnWriter(writer) => write!(writer, Float, |x| x),
        ColumnWriter::DoubleColumnWriter(writer) => write!(writer, Double, |x| x),
        ColumnWriter::ByteArrayColumnWriter(writer) => write!(writer, Bytes, ByteArray::from),
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => {
            write!(writer, Bytes, FixedLenByteArray::from)
        }
        _ => panic!("no such column is written"),
    }
    .expect("the values are written");
}
