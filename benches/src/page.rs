//! The page of measurements: a section for each part, and in it the last run on each kind of CPU.

use std::fmt::Write;

/// What was measured on one kind of CPU.
struct Run {
    cpu: String,
    text: String,
}

/// The page in parts, each with its title.
pub struct Page(Vec<(String, Vec<Run>)>);

/// The title and the text below it of each section at a level of headings.
fn sections(text: &str, heading: &str) -> Vec<(String, String)> {
    let parts = text.split(heading).skip(1);
    let named = parts.map(|part| part.split_once('\n').unwrap_or((part, "")));
    named
        .map(|(title, text)| (title.to_owned(), text.trim().to_owned()))
        .collect()
}

impl Page {
    /// Reads a page as [`Page::text`] writes it; what stands above its first section is left out.
    pub fn parse(text: &str) -> Page {
        let runs = |text: &str| {
            sections(text, "\n### ")
                .into_iter()
                .map(|(cpu, text)| Run { cpu, text })
                .collect()
        };
        // A section's text was trimmed, and a heading is found by the end of the line before it.
        let parts = sections(text, "\n## ").into_iter();
        Page(
            parts
                .map(|(title, text)| (title, runs(&format!("\n{text}"))))
                .collect(),
        )
    }

    /// Puts a run in the place of the last one of the same part on the same kind of CPU.
    pub fn put(&mut self, title: &str, cpu: &str, text: &str) {
        let at = self.0.iter().position(|(old, _)| old == title).unwrap_or_else(|| {
            self.0.push((title.to_owned(), Vec::new()));
            self.0.len() - 1
        });
        let runs = &mut self.0[at].1;
        runs.retain(|run| run.cpu != cpu);
        runs.push(Run { cpu: cpu.to_owned(), text: text.trim().to_owned() });
        runs.sort_by(|a, b| a.cpu.cmp(&b.cpu));
    }

    /// The parts that these titles name, in their order.
    pub fn text(&self, titles: &[&str]) -> String {
        let mut page = String::new();
        for title in titles {
            let Some((_, runs)) = self.0.iter().find(|(old, _)| old == title) else {
                continue;
            };
            write!(page, "\n## {title}\n").expect("text can be written to");
            for Run { cpu, text } in runs {
                write!(page, "\n### {cpu}\n\n{text}\n").expect("text can be written to");
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_the_last_run_of_each_cpu() {
        let mut page = Page::parse("# Title\n\nWords.\n");
        page.put("Second", "Intel", "old");
        page.put("Second", "Intel", "new\n\n| table |\n");
        page.put("First", "Intel", "other");
        page.put("Second", "AMD", "its own");
        let text = page.text(&["First", "Second", "Third"]);
        let expected = "\n## First\n\n### Intel\n\nother\n\
                        \n## Second\n\n### AMD\n\nits own\n\n### Intel\n\nnew\n\n| table |\n";
        assert_eq!(text, expected);
        assert_eq!(Page::parse(&text).text(&["First", "Second"]), expected);
    }
}
