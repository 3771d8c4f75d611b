//! Kubeconfigs as text: YAML in any style.

use fastrand::Rng;
use serde_json::{Value, json};

use super::entries::Case;

/// Returns the name and the content of an entry.
type Named = fn(&Case) -> (&str, &Value);

/// Writes a kubeconfig with these contexts.
///
/// A context is written in the same way, whichever others there are.
pub(super) fn kubeconfig(seed: u64, cases: &[Case]) -> Vec<u8> {
    let lists: [(&str, &str, Named); 3] = [
        ("clusters", "cluster", |case| {
            (&case.cluster_name, &case.cluster)
        }),
        ("contexts", "context", |case| (&case.name, &case.context)),
        ("users", "user", |case| (&case.user_name, &case.user)),
    ];
    let mut style = Style::new(seed);
    let indent = style.rng.usize(..3);
    let mut parts: Vec<String> = lists
        .into_iter()
        .map(|(list, content, of)| {
            let item = |case: &Case| {
                let (name, value) = of(case);
                let mut style = Style::new(seed ^ case.seed);
                style.item(&json!({"name": name, content: value}), indent)
            };
            format!("{list}:\n{}", cases.iter().map(item).collect::<String>())
        })
        .collect();
    for (name, value) in [
        ("apiVersion", json!("v1")),
        ("kind", json!("Config")),
        ("preferences", json!({})),
        ("current-context", json!("c0")),
        ("unknown", json!({"a": [1, "b"]})),
    ] {
        parts.push(style.member(name, &value, 0));
    }
    style.rng.shuffle(&mut parts);
    let heads = ["", "---\n", "# by hand\n", "%YAML 1.1\n---\n"];
    let text = heads[style.rng.usize(..heads.len())].to_owned() + &parts.concat();
    let text = match style.rng.u32(..12) {
        0 => text.replace('\n', "\r\n"),
        1 => format!("\u{feff}{text}"),
        2 => format!("{text}...\n"),
        3 => format!("{text}---\nother: document\n"),
        _ => text,
    };
    text.into_bytes()
}

/// Chooses among the ways to write a value.
struct Style {
    rng: Rng,
    /// The texts that have an anchor; its name is their place.
    anchored: Vec<String>,
}

impl Style {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::with_seed(seed),
            anchored: Vec::new(),
        }
    }

    /// Writes a member of a mapping in lines of its own.
    fn member(&mut self, name: &str, value: &Value, indent: usize) -> String {
        let (pad, key) = (" ".repeat(indent), self.key(name));
        format!("{pad}{key}:{}", self.behind(value, indent))
    }

    /// Writes a value behind its key or dash, up to the end of the line.
    fn behind(&mut self, value: &Value, indent: usize) -> String {
        let is_flow = self.rng.u32(..8) == 0;
        let comment = if self.rng.u32(..20) == 0 {
            " # a comment"
        } else {
            ""
        };
        match value {
            Value::Object(members) if !members.is_empty() && !is_flow => {
                let inner = indent + self.rng.usize(1..5);
                let lines = members
                    .iter()
                    .map(|(name, value)| self.member(name, value, inner));
                format!("{comment}\n{}", lines.collect::<String>())
            }
            Value::Array(items) if !items.is_empty() && !is_flow => {
                // The dashes of a list may stand below its key.
                let inner = indent + self.rng.usize(..3);
                let lines = items.iter().map(|item| self.item(item, inner));
                format!("{comment}\n{}", lines.collect::<String>())
            }
            Value::String(text) if is_flow && is_block(text) => literal(text, indent + 2),
            value => format!(" {}{comment}\n", self.flow(value, indent + 1)),
        }
    }

    /// Writes an item of a list, whose first member may stand behind the dash.
    fn item(&mut self, item: &Value, indent: usize) -> String {
        let pad = " ".repeat(indent);
        match item {
            Value::Object(members) if !members.is_empty() && self.rng.u32(..8) > 0 => {
                let gap = self.rng.usize(1..4);
                let inner = indent + 1 + gap;
                let lines = members
                    .iter()
                    .map(|(name, value)| self.member(name, value, inner));
                let lines: String = lines.collect();
                format!("{pad}-{}{}", " ".repeat(gap), &lines[inner..])
            }
            item => format!("{pad}- {}\n", self.flow(item, indent + 1)),
        }
    }

    /// Writes a value in flow style, with an indentation of further lines.
    fn flow(&mut self, value: &Value, indent: usize) -> String {
        if self.rng.u32(..12) == 0 {
            // JSON is YAML.
            return json_text(value);
        }
        let gap = if self.rng.u32(..6) == 0 {
            format!("\n{}", " ".repeat(indent))
        } else {
            String::new()
        };
        match value {
            Value::Object(members) => {
                let members = members.iter().map(|(name, value)| {
                    format!("{gap}{}: {}", self.key(name), self.flow(value, indent))
                });
                let members: Vec<String> = members.collect();
                format!("{{{}}}", members.join(", "))
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.flow(item, indent)).collect();
                let end = if self.rng.u32(..8) == 0 && !items.is_empty() {
                    ","
                } else {
                    ""
                };
                format!("[{gap}{}{end}]", items.join(", "))
            }
            Value::String(text) => self.text(text),
            Value::Bool(flag) => {
                let words = [
                    ["false", "False", "no", "off"],
                    ["true", "TRUE", "yes", "on"],
                ];
                words[usize::from(*flag)][self.rng.usize(..4)].to_owned()
            }
            Value::Null => ["null", "~", "Null"][self.rng.usize(..3)].to_owned(),
            Value::Number(number) => number.to_string(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let known = self.anchored.iter().position(|known| known == text);
        let written = self.quoted(text);
        match (self.rng.u32(..12), known) {
            (0, _) => format!("!!str {written}"),
            (1..7, Some(at)) => format!("*a{at} "),
            (1, None) => {
                self.anchored.push(text.to_owned());
                format!("&a{} {written}", self.anchored.len() - 1)
            }
            _ => written,
        }
    }

    /// Writes a text in quotes, or without them; then both readers may misread it.
    fn quoted(&mut self, text: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._/+=~:".contains(letter);
        let has_plain_ends = |letter: char| letter.is_ascii_alphanumeric() || letter == '=';
        let may_be_plain = text.chars().all(is_plain)
            && text.starts_with(has_plain_ends)
            && text.ends_with(has_plain_ends)
            && text.len() > 6;
        match self.rng.u32(..3) {
            0 if may_be_plain => text.to_owned(),
            1 if is_printable(text) => {
                format!("'{}'", text.replace('\'', "''"))
            }
            _ => json_text(&Value::from(text)),
        }
    }

    fn key(&mut self, name: &str) -> String {
        let is_word = name
            .chars()
            .all(|letter| letter.is_ascii_alphabetic() || letter == '-')
            && name.len() > 3;
        match self.rng.u32(..6) {
            0 if is_printable(name) => format!("'{}'", name.replace('\'', "''")),
            1..5 if is_word => name.to_owned(),
            _ => json_text(&Value::from(name)),
        }
    }
}

/// Writes JSON, which is YAML but for three characters.
///
/// Unless they are escaped, they end a line for kubectl, as in YAML 1.1.
fn json_text(value: &Value) -> String {
    let escaped = |letter: char| match letter {
        '\u{85}' | '\u{2028}' | '\u{2029}' => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    value.to_string().chars().map(escaped).collect()
}

fn is_printable(text: &str) -> bool {
    text.chars()
        .all(|letter| letter == ' ' || letter.is_ascii_graphic())
}

/// Returns whether a text can be written in lines as they are.
fn is_block(text: &str) -> bool {
    let is_clean = |letter: char| letter == '\n' || letter == ' ' || letter.is_ascii_graphic();
    text.starts_with(|letter: char| letter.is_ascii_graphic()) && text.chars().all(is_clean)
}

/// Writes a text in lines as they are.
fn literal(text: &str, indent: usize) -> String {
    let body = text.trim_end_matches('\n');
    let ends = text.len() - body.len();
    let pad = " ".repeat(indent);
    let lines = body.split('\n').map(|line| format!("{pad}{line}\n"));
    let chomp = ["-", "", "+"][ends.min(2)];
    let rest = "\n".repeat(ends.saturating_sub(1));
    format!(" |{chomp}\n{}{rest}", lines.collect::<String>())
}
