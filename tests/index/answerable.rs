//! Which random questions an index surely can answer by reading a part of the table: an oracle of
//! its own, by what docs/index.md says. Nothing is said of the others.

/// A run of characters that weigh so much has a window.
const WINDOW: usize = 4;

/// Returns whether some characters that follow each other in a text have a window.
fn has_window(run: &str) -> bool {
    let weight = |c: char| match c {
        // Folded to nothing.
        '\u{307}' => 0,
        '\u{2000}'.. => 2,
        _ => 1,
    };
    let weighs_enough = run.chars().map(weight).sum::<usize>() >= WINDOW;
    weighs_enough || run.contains(|c: char| matches!(c, '\u{4E00}'..='\u{9FFF}'))
}

/// Returns whether a pattern of LIKE has a window between its wildcards.
fn is_like_answerable(pattern: &str) -> bool {
    let mut runs = vec![String::new()];
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            '%' | '_' => runs.push(String::new()),
            '\\' => runs.extend_last(characters.next()),
            c => runs.extend_last(Some(c)),
        }
    }
    runs.iter().any(|run| has_window(run))
}

trait ExtendLast {
    fn extend_last(&mut self, c: Option<char>);
}

impl ExtendLast for Vec<String> {
    fn extend_last(&mut self, c: Option<char>) {
        if let Some(last) = self.last_mut() {
            last.extend(c);
        }
    }
}

/// Returns whether each branch of a regular expression has a window that each match has. Knows only
/// characters that stand for themselves, alone or in branches of nothing else.
fn is_regex_answerable(expression: &str) -> bool {
    let (options, expression) = match expression.strip_prefix("(?") {
        Some(rest) => rest.split_once(')').unwrap_or(("", rest)),
        None => ("", expression),
    };
    // Characters that PostgreSQL doesn't name don't count beside word boundaries, nor may blanks.
    let has_boundary = expression.contains(r"\y");
    let counts = |c: char| u32::from(c) < 0x800 || !has_boundary;
    let is_plain = |c: char| counts(c) && !r"\.[](){}|?*+^$".contains(c);
    if options.contains(':') || options.contains('x') || expression.contains('(') {
        return false;
    }
    expression.split('|').all(|branch| {
        let mut runs = vec![String::new()];
        let mut characters = branch.chars().peekable();
        while let Some(c) = characters.next() {
            let escaped = if c == '\\' { characters.next() } else { None };
            let is_itself = match escaped {
                Some(escaped) => !escaped.is_alphanumeric(),
                None => is_plain(c),
            };
            let is_quantified = matches!(characters.peek(), Some('?' | '*' | '+' | '{'));
            if is_itself && !is_quantified {
                runs.extend_last(escaped.or(Some(c)));
            } else {
                runs.push(String::new());
            }
            if c == '[' {
                characters.by_ref().find(|&c| c == ']');
            }
        }
        runs.iter().any(|run| has_window(run))
    })
}

/// Returns whether an index with the keys of a class surely can answer a question, that isn't about
/// what most rows have.
pub fn is_answerable(class: &str, operator: &str, question: &str) -> bool {
    let members = || {
        let members = question.split(|c| "{,}".contains(c));
        members.filter(|member| !member.is_empty()).count()
    };
    match (class, operator) {
        ("text_ngram_ops", "=" | "^@") => has_window(question),
        ("text_ngram_ops", "LIKE" | "ILIKE") => is_like_answerable(question),
        ("text_ngram_ops", "~" | "~*") => is_regex_answerable(question),
        ("array_ops", "=" | "@>") => members() > 0,
        ("array_ops", "&&") => members() == 1,
        ("tsvector_ops", "@@") => !question.contains(['!', '|', '*']),
        // Which documents and paths have a value in them that is asked for isn't known here, and many
        // ranges have a key.
        ("jsonb_ops", "=" | "@>" | "?" | "?|" | "?&" | "@?" | "@@") => false,
        _ => panic!("when can an index of {class} answer {operator}?"),
    }
}
