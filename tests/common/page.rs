//! Documents: their fenced blocks, and the outputs that follow these.

use std::ops::Range;

/// A fenced block: its language, and its lines as indices into the document's.
struct Fence<'a> {
    language: &'a str,
    lines: Range<usize>,
}

/// A block of code of a document.
pub struct Example {
    /// The line its code begins at, counted from 1.
    pub line: usize,
    pub code: String,
    /// The lines of the output block, as indices into the document's.
    pub output: Option<Range<usize>>,
}

fn fences<'a>(name: &str, lines: &[&'a str]) -> Vec<Fence<'a>> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    for (i, line) in lines.iter().enumerate() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            continue;
        };
        assert!(line.starts_with("```"), "{name}:{}: a fence must begin the line", i + 1);
        open = match open {
            None => Some((language, i + 1)),
            Some((language, start)) => {
                assert_eq!(
                    *line,
                    "```",
                    "{name}:{}: the block of line {start} is not closed",
                    i + 1
                );
                found.push(Fence { language, lines: start..i });
                None
            }
        };
    }
    assert!(open.is_none(), "{name}: the last block is not closed");
    found
}

/// The blocks of a language. What a block prints is the `text` block after it, with nothing but
/// blank lines between.
pub fn examples(name: &str, lines: &[&str], language: &str) -> Vec<Example> {
    let fences = fences(name, lines);
    let mut found = Vec::new();
    for (i, fence) in fences.iter().enumerate() {
        let line = fence.lines.start + 1;
        if fence.language != language {
            let other = !fence.language.to_lowercase().contains(language);
            assert!(other, "{name}:{line}: a block of {language} has another name");
            continue;
        }
        let output = fences.get(i + 1).filter(|next| {
            ["text", ""].contains(&next.language)
                && lines[fence.lines.end + 1..next.lines.start - 1]
                    .iter()
                    .all(|l| l.trim().is_empty())
        });
        let code = lines[fence.lines.clone()].join("\n");
        found.push(Example { line, code, output: output.map(|o| o.lines.clone()) });
    }
    found
}

/// Without blanks at the ends of lines, which editors remove, and without blank lines at both ends.
pub fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Whether outputs are to be written into the documents.
pub fn writes() -> bool {
    std::env::var("DOCUMENTATION").is_ok_and(|mode| mode == "write")
}

/// The document with these outputs in place of its own.
pub fn rewritten(lines: &[&str], examples: &[Example], outputs: &[String]) -> String {
    let mut text = String::new();
    let mut done = 0;
    for (example, output) in examples.iter().zip(outputs) {
        let Some(range) = &example.output else {
            continue;
        };
        lines[done..range.start]
            .iter()
            .for_each(|line| text += &format!("{line}\n"));
        text += &format!("{output}\n");
        done = range.end;
    }
    lines[done..].iter().for_each(|line| text += &format!("{line}\n"));
    text
}
