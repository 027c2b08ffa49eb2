//! The figures that README.md, docs/faq.md and docs/sizing.md give for bits, hashes and bytes are
//! those of the code.

use pg_bloom_core::sizing::{self, density, size_for_capacity};
use pg_bloom_core::{Header, Kind, Layout};

const ORDER: [Layout; 3] = [Layout::Blocked, Layout::Classic, Layout::Parquet];

/// A page's lines; `name` is relative to the repository.
fn page(name: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(path)
        .expect("the page is there")
        .lines()
        .map(str::to_owned)
        .collect()
}

/// Asserts that a page has these lines, one after the other.
fn has_lines(name: &str, expected: &[String]) {
    let found = page(name).windows(expected.len()).any(|lines| lines == expected);
    assert!(found, "{name} must have these lines:\n{}", expected.join("\n"));
}

/// A number with commas between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|g| std::str::from_utf8(g).expect("digits"))
        .collect();
    groups.join(",")
}

/// What the table says of a layout at a rate: the least bits per element, those of a million
/// elements, hashes and bytes.
fn cell(layout: Layout, fpr: f64) -> String {
    let Ok(size) = size_for_capacity(layout, 1_000_000, fpr) else {
        return "–".into();
    };
    let least = density(layout, fpr).expect("a rate that has a size").bits_per_element;
    let used = (size.blocks * layout.block_bits()) as f64 / 1e6;
    let bytes = Header::with_size(size, Kind::NONE).dense_bytes();
    format!("{least:.2} / {used:.2} / {} / {}", size.num_hashes, grouped(bytes))
}

#[test]
fn sizing_has_the_bits_of_every_rate() {
    let rates = [
        ("0.1", 0.1),
        ("0.05", 0.05),
        ("0.02", 0.02),
        ("0.01", 0.01),
        ("0.001", 0.001),
        ("1e-4", 1e-4),
    ];
    let lower = [("1e-5", 1e-5), ("1e-6", 1e-6), ("1e-9", 1e-9)];
    let row = |&(shown, fpr): &(&str, f64)| {
        format!("| {shown} | {} |", ORDER.map(|layout| cell(layout, fpr)).join(" | "))
    };
    has_lines("docs/sizing.md", &rates.iter().chain(&lower).map(row).collect::<Vec<_>>());
}

#[test]
fn sizing_says_what_blocks_cost() {
    let more = |fpr| {
        let [blocked, classic] = [Layout::Blocked, Layout::Classic]
            .map(|layout| density(layout, fpr).expect("possible").bits_per_element);
        (blocked / classic - 1.0) * 100.0
    };
    let expected = format!(
        "At 0.01 that costs {:.0} % more space, at 10⁻⁴ {:.0} %, at 10⁻⁹ {:.0} %.",
        more(0.01),
        more(1e-4),
        more(1e-9)
    );
    assert!(
        page("docs/sizing.md").join(" ").contains(&expected),
        "docs/sizing.md must say: {expected}"
    );
}

#[test]
fn the_answers_have_the_least_bits_of_three_rates() {
    let lines = page("docs/faq.md");
    for layout in ORDER {
        let bits = [0.01, 0.001, 1e-4]
            .map(|fpr| format!("{:.2}", density(layout, fpr).expect("possible").bits_per_element))
            .join(" / ");
        let start = format!("| `{}` | {bits} |", layout.name());
        assert!(
            lines.iter().any(|line| line.starts_with(&start)),
            "docs/faq.md must have a line that starts: {start}"
        );
    }
}

#[test]
fn readme_has_the_range_of_rates() {
    let promise =
        format!("from {} down to {:e}", sizing::GREATEST_FPR, sizing::least_fpr(Layout::Blocked));
    assert!(page("README.md").join(" ").contains(&promise), "README.md must say: {promise}");
}
