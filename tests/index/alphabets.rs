//! Words of many scripts, by LIKE, ILIKE, `~` and `~*`, in locales of C, ICU and the C library: each
//! is found, and by reading a few ranges.

use crate::common::asking::{agree_by_part, shares_read};
use crate::common::{column, run};
use crate::server;

/// A word of each script, with four letters or more, or two wide ones.
const WORDS: [(&str, &str); 42] = [
    ("Latin", "Straßenbahn"),
    ("Vietnamese", "đường"),
    ("transliterated", "Kṛṣṇa"),
    ("full-width", "ＷＩＤＥ"),
    ("Greek", "Ελλάδα"),
    ("Coptic", "Ⲙⲉⲧⲣⲉⲙ"),
    ("Cyrillic", "Москва"),
    ("Glagolitic", "Ⰳⰾⰰⰳⱁⰾ"),
    ("Armenian", "Հայաստան"),
    ("Georgian", "საქართველო"),
    ("Hebrew", "ישראל"),
    ("Arabic", "القاهرة"),
    ("Syriac", "ܣܘܪܝܝܐ"),
    ("Thaana", "ދިވެހި"),
    ("NKo", "ߒߞߏߓߊ"),
    ("Tifinagh", "ⵜⵉⴼⵉⵏⴰⵖ"),
    ("Ethiopic", "ኢትዮጵያ"),
    ("Devanagari", "हिन्दुस्तान"),
    ("Bengali", "বাংলাদেশ"),
    ("Gurmukhi", "ਪੰਜਾਬੀ"),
    ("Gujarati", "ગુજરાતી"),
    ("Oriya", "ଓଡ଼ିଶା"),
    ("Tamil", "தமிழ்நாடு"),
    ("Telugu", "తెలుగు"),
    ("Kannada", "ಕರ್ನಾಟಕ"),
    ("Malayalam", "മലയാളം"),
    ("Sinhala", "සිංහල"),
    ("Thai", "คณิตศาสตร์"),
    ("Lao", "ປະເທດລາວ"),
    ("Tibetan", "བོད་ཡིག"),
    ("Myanmar", "မြန်မာ"),
    ("Khmer", "ភាសាខ្មែរ"),
    ("Mongolian", "ᠮᠣᠩᠭᠣᠯ"),
    ("Cherokee", "ᏣᎳᎩᎯᎠ"),
    ("syllabics of Canada", "ᐃᓄᒃᑎᑐᑦ"),
    ("Runic", "ᚠᚢᚦᚨᚱᚲ"),
    ("Yi", "ꆈꌠꁱꂷ"),
    ("Hangul", "대한민국"),
    ("Hiragana", "ひらがな"),
    ("Katakana", "カタカナ"),
    ("Han", "中华人民"),
    ("Deseret", "𐐔𐐯𐑅𐐨𐑉𐐯𐐻"),
];
/// Words of a script in the table: of the letters of its word, in other orders.
const ROWS_OF_SCRIPT: usize = 60;
/// The most of the table that a question may read.
const MOST_READ: f64 = 0.15;

/// Returns a text of the same letters in another order, for each number another one.
fn shuffled(word: &str, number: usize) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let mut number = number;
    for end in (2..=letters.len()).rev() {
        letters.swap(end - 1, number % end);
        number /= end;
    }
    letters.into_iter().collect()
}

#[test]
fn words_of_all_scripts_are_found_in_few_ranges() {
    let mut client =
        server().empty_database("alphabets", "ENCODING UTF8 LOCALE 'C.UTF-8' TEMPLATE template0");
    run(&mut client, "CREATE EXTENSION pg_bloom");
    let collations: Vec<String> = column(
        &mut client,
        "SELECT quote_ident(collname) FROM pg_collation WHERE collencoding IN (-1, 6)
         AND collname IN ('C', 'C.utf8', 'en_US.utf8', 'und-x-icu', 'th-x-icu', 'pg_c_utf8') ORDER BY 1",
    );
    // At least those of C, of the C library and of ICU.
    assert!(collations.len() > 2, "{collations:?}");
    for collation in &collations {
        let mut texts = Vec::new();
        for (_, word) in WORDS {
            texts.push(format!("Some {word} text"));
            texts.extend(
                (1..ROWS_OF_SCRIPT).map(|n| format!("Same {} text", shuffled(word, 7 * n))),
            );
        }
        let values: Vec<String> = texts.iter().map(|text| format!("('{text}')")).collect();
        run(
            &mut client,
            &format!(
                "DROP TABLE IF EXISTS alphabets;
                 CREATE TABLE alphabets (id serial, t text COLLATE {collation}, pad text DEFAULT repeat('-', 700));
                 ALTER TABLE alphabets ALTER pad SET STORAGE PLAIN;
                 INSERT INTO alphabets (t) VALUES {};
                 CREATE INDEX alphabets_t ON alphabets USING bloom_filter (t text_ngram_ops) WITH (fpr = 0.01);
                 ANALYZE alphabets",
                values.join(",")
            ),
        );
        for (script, word) in WORDS {
            let alone = queries_of(word);
            let beside_ascii = [format!("Some {word}"), format!("{word} te")];
            let mut queries = alone.clone();
            queries.extend(beside_ascii.iter().flat_map(|words| queries_of(words)));
            for (query, share) in queries.iter().zip(shares_read(&mut client, &queries)) {
                assert!(share < MOST_READ, "{script}, {collation}: {query} read {share:.2}");
            }
            for query in &alone {
                let found = agree_by_part(&mut client, "alphabets_t", query);
                // Some locales know letters without knowing their case.
                assert!(found > 0 || query.contains("ILIKE"), "{query} found nothing");
            }
        }
    }
}

/// Returns a query for each way to ask for a word.
fn queries_of(word: &str) -> Vec<String> {
    let lower_case = word.to_lowercase();
    let conditions = [
        format!("LIKE '%{word}%'"),
        format!("ILIKE '%{word}%'"),
        format!("ILIKE '%{lower_case}%'"),
        format!("SIMILAR TO '%({word}|nobody)%'"),
        format!("~ '{word}'"),
        format!("~* '{word}'"),
        format!("~* '(nobody|{word}|漢字)'"),
        format!(r"~ '\w? ?{word}\s*'"),
    ];
    let of_condition = |condition| format!("SELECT id::text FROM alphabets WHERE t {condition}");
    conditions.map(of_condition).to_vec()
}
