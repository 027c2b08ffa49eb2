//! The Rust of docs/applications.md: the page has all that follows, word for word.

use pg_bloom_core::Filter;
use postgres::{Client, Error};

/// The users who may have seen one of these items.
pub fn who_has_seen(client: &mut Client, items: &[i64]) -> Result<Vec<i32>, Error> {
    let sql = "SELECT user_id FROM seen_by WHERE bloom_contains_any(items, $1::bigint[]) ORDER BY user_id";
    client
        .query(sql, &[&items])?
        .iter()
        .map(|row| row.try_get(0))
        .collect()
}

/// A user's filter.
pub fn filter(client: &mut Client, user_id: i32) -> Result<Filter, Box<dyn std::error::Error>> {
    let row =
        client.query_one("SELECT items::bytea FROM seen_by WHERE user_id = $1", &[&user_id])?;
    Ok(Filter::parse(row.try_get(0)?)?)
}

/// Gives a user this filter.
pub fn store(client: &mut Client, user_id: i32, filter: &Filter) -> Result<u64, Error> {
    client.execute(
        "INSERT INTO seen_by VALUES ($1, $2::bytea::bloom)",
        &[&user_id, &filter.as_bytes()],
    )
}
