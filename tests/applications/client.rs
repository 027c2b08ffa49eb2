//! The Rust of docs/applications.md: the page has all that follows, word for word.

use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;
use postgres::{Client, Error};

/// The users who may have seen one of these items.
pub fn who_has_seen(client: &mut Client, items: &[i64]) -> Result<Vec<i32>, Error> {
    let sql = "SELECT user_id FROM seen_by WHERE bloom_contains_any(items, $1::bigint[]) ORDER BY user_id";
    client.query(sql, &[&items])?.iter().map(|row| row.try_get(0)).collect()
}

/// Notes that a user has seen an item.
pub fn add(client: &mut Client, user_id: i32, item: i64) -> Result<u64, Error> {
    let sql = "INSERT INTO seen_by VALUES ($1, bloom_from_array(ARRAY[$2::bigint], 10000))
               ON CONFLICT (user_id) DO UPDATE SET items = bloom_add(seen_by.items, $2::bigint)";
    client.execute(sql, &[&user_id, &item])
}

/// A user's filter, as it is stored.
pub fn filter(client: &mut Client, user_id: i32) -> Result<Vec<u8>, Error> {
    client.query_one("SELECT items::bytea FROM seen_by WHERE user_id = $1", &[&user_id])?.try_get(0)
}

/// Gives a user this filter.
pub fn store(client: &mut Client, user_id: i32, filter: &[u8]) -> Result<u64, Error> {
    client.execute("INSERT INTO seen_by VALUES ($1, $2::bytea::bloom)", &[&user_id, &filter])
}

/// Gives many users the same filter.
pub fn copy(client: &mut Client, users: &[i32], filter: &[u8]) -> Result<u64, Error> {
    let writer = client.copy_in("COPY seen_by FROM STDIN (FORMAT binary)")?;
    let mut writer = BinaryCopyInWriter::new(writer, &[Type::INT4, Type::BYTEA]);
    for user_id in users {
        writer.write(&[user_id, &filter])?;
    }
    writer.finish()
}
