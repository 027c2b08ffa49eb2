//! scripts/parquet-filters prints every filter that a file has, or says what it leaves out.

use crate::common::run;
use crate::server;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

/// Leaves of `place` have the names of others, and other types.
const SCHEMA: &str = "message visits {
    REQUIRED group place { REQUIRED INT64 name; REQUIRED BYTE_ARRAY at (UTF8); }
    REQUIRED BYTE_ARRAY name (UTF8);
    REQUIRED INT64 at;
    REQUIRED INT32 size (INTEGER(32,false));
}";

/// Writes rows 0 to 999 in a new file: name `name ROW`, at ROW, and others within.
fn write(path: &Path) {
    let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
    let properties = WriterProperties::builder()
        .set_bloom_filter_enabled(true)
        .set_bloom_filter_max_ndv(1000)
        .build();
    let file = File::create(path).expect("a new file");
    let mut writer =
        SerializedFileWriter::new(file, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let mut number = 0;
    while let Some(mut column) = group.next_column().expect("one more column") {
        let text = |i| {
            ByteArray::from(
                if number == 2 { format!("name {i}") } else { format!("within {i}") }.as_str(),
            )
        };
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                writer.write_batch(&(0..1000).map(text).collect::<Vec<_>>(), None, None)
            }
            ColumnWriter::Int64ColumnWriter(writer) => {
                let first = if number == 3 { 0 } else { 5000 };
                writer.write_batch(&(first..first + 1000).collect::<Vec<_>>(), None, None)
            }
            ColumnWriter::Int32ColumnWriter(writer) => {
                writer.write_batch(&(0..1000).collect::<Vec<_>>(), None, None)
            }
            _ => panic!("no such column"),
        }
        .expect("the values are written");
        column.close().expect("the column is written");
        number += 1;
    }
    group.close().expect("the row group is written");
    writer.close().expect("the file is written");
}

/// Rewrites the footer of a file without the lengths of the filters.
fn without_lengths(path: &Path) {
    let reader = SerializedFileReader::new(File::open(path).expect("the file is there"))
        .expect("a Parquet file");
    let group = |group: &RowGroupMetaData| {
        let column = |column: &parquet::file::metadata::ColumnChunkMetaData| {
            column
                .clone()
                .into_builder()
                .set_bloom_filter_length(None)
                .build()
                .expect("a column")
        };
        let columns = group.columns().iter().map(column).collect();
        group
            .clone()
            .into_builder()
            .set_column_metadata(columns)
            .build()
            .expect("a row group")
    };
    let groups = reader.metadata().row_groups().iter().map(group).collect();
    let metadata = ParquetMetaData::new(reader.metadata().file_metadata().clone(), groups);
    let mut bytes = fs::read(path).expect("the file is there");
    let end = bytes.len();
    let footer = u32::from_le_bytes(bytes[end - 8..end - 4].try_into().expect("four bytes"));
    bytes.truncate(end - 8 - footer as usize);
    ParquetMetaDataWriter::new(&mut bytes, &metadata)
        .finish()
        .expect("a footer");
    fs::write(path, bytes).expect("the file can be written");
}

/// A new directory for files.
fn directory(name: &str) -> PathBuf {
    let directory = server().dir().join(name);
    fs::create_dir_all(&directory).expect("a directory can be made");
    directory
}

fn script(files: &[&Path]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/python/bin/python");
    assert!(python.exists(), "{} is missing: scripts/setup python makes it", python.display());
    Command::new(python)
        .arg(root.join("scripts/parquet-filters"))
        .args(files)
        .output()
        .expect("it runs")
}

/// What the script prints, in a table of these filters.
fn catalog(database: &str, files: &[&Path]) -> (postgres::Client, String) {
    let Output { status, stdout, stderr } = script(files);
    let stderr = String::from_utf8(stderr).expect("it is text");
    assert!(status.success(), "{stderr}");
    let mut client = server().database(database);
    run(
        &mut client,
        "CREATE TABLE footer (path text, row_group int, rows bigint, name text, sql_type regtype, filter bytea)",
    );
    let mut writer = client.copy_in("COPY footer FROM STDIN").expect("rows can be copied");
    std::io::Write::write_all(&mut writer, &stdout).expect("rows can be copied");
    writer.finish().expect("rows can be copied");
    run(
        &mut client,
        "CREATE TABLE chunk AS SELECT path, rows, name, sql_type, bloom_from_parquet(filter, sql_type) AS filter FROM footer",
    );
    (client, stderr)
}

#[test]
fn columns_are_found_by_their_paths_with_and_without_lengths() {
    let directory = directory("paths");
    // Also what is a pattern, and what COPY reads otherwise.
    let [plain, odd] = ["plain.parquet", "a\tb\r\n[1]*\\.parquet"].map(|name| directory.join(name));
    write(&plain);
    write(&odd);
    without_lengths(&odd);
    let (mut client, said) = catalog("paths", &[&plain, &odd]);
    let found: Vec<(String, String, String, i64, bool, bool)> = client
        .query(
            "SELECT path, name, sql_type::text, rows,
                bool_and(CASE name WHEN 'name' THEN bloom_contains(filter, 'name ' || i) ELSE bloom_contains(filter, i) END),
                bool_or(CASE name WHEN 'name' THEN bloom_contains(filter, 'within ' || i)
                    ELSE bloom_contains(filter, 10000 + i) END)
             FROM chunk, generate_series(0, 999) AS i GROUP BY 1, 2, 3, 4 ORDER BY path = $1 DESC, name",
            &[&plain.to_str()],
        )
        .expect("a catalog")
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2), row.get(3), row.get(4), row.get(5)))
        .collect();
    let names: Vec<_> = found
        .iter()
        .map(|row| (row.0.as_str(), row.1.as_str(), row.2.as_str(), row.3, row.4))
        .collect();
    let [plain, odd] = [&plain, &odd].map(|path| path.to_str().expect("it is text"));
    let expected = [plain, odd].map(|path| {
        [
            (path, "at", "bigint", 1000, true),
            (path, "name", "text", 1000, true),
        ]
    });
    assert_eq!(names, expected.concat());
    for column in ["place.name", "place.at", "size"] {
        assert!(said.contains(&format!("left out column '{column}', in files: 2")), "{said}");
    }
}

#[test]
fn nothing_is_printed_unless_all_files_can_be_read() {
    let directory = directory("unreadable");
    let [good, encrypted, cut, absent, no_header] =
        ["good", "encrypted", "cut", "absent", "no_header"].map(|name| directory.join(name));
    write(&good);
    let bytes = fs::read(&good).expect("the file is there");
    fs::write(&encrypted, [b"PARE", &bytes[4..bytes.len() - 4], b"PARE"].concat())
        .expect("a file can be written");
    fs::write(&cut, &bytes[..bytes.len() / 2]).expect("a file can be written");
    write(&no_header);
    without_lengths(&no_header);
    let reader =
        SerializedFileReader::new(File::open(&no_header).expect("a file")).expect("a Parquet file");
    let at = reader
        .metadata()
        .row_group(0)
        .column(2)
        .bloom_filter_offset()
        .expect("a filter") as usize;
    let mut bytes = fs::read(&no_header).expect("the file is there");
    bytes[at] ^= 1;
    fs::write(&no_header, bytes).expect("a file can be written");
    let bad = [&encrypted, &cut, &absent, &no_header];
    let Output { status, stdout, stderr } =
        script(&[&good, &encrypted, &cut, &absent, &no_header].map(PathBuf::as_path));
    let stderr = String::from_utf8(stderr).expect("it is text");
    assert!(!status.success() && stdout.is_empty() && !stderr.contains("Traceback"), "{stderr}");
    assert!(
        bad.iter()
            .all(|path| stderr.contains(path.to_str().expect("it is text"))),
        "{stderr}"
    );
    assert!(!stderr.contains(good.to_str().expect("it is text")), "{stderr}");
}
