//! Reading objects from YAML and JSON files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::document::{Document, DocumentLocation};

/// The extensions of the files to read in a folder.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads the objects of files, and of the files in folders by name.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            documents.extend(parse(&file, &text)?);
        }
    }
    Ok(documents)
}

/// Returns a file, or the files of a folder.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read {}", path.display());
    if !fs::metadata(path).with_context(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(unreadable)? {
        let file = entry.with_context(unreadable)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && !file.is_dir() {
            files.push(file);
        }
    }
    // The order of a folder is that of the file system; manifests are often numbered.
    files.sort();
    ensure!(
        !files.is_empty(),
        "{} has no .yaml, .yml or .json files",
        path.display()
    );
    Ok(files)
}

fn parse(file: &Path, text: &str) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    for (number, value) in values(file, text)? {
        let location = DocumentLocation {
            file: file.to_owned(),
            document: number,
            item: None,
        };
        unfold(location, value, &mut documents)?;
    }
    Ok(documents)
}

/// Returns the documents of a file, numbered; empty ones are counted and left out.
fn values(file: &Path, text: &str) -> Result<Vec<(usize, Value)>> {
    // JSON is YAML, but its own parser is faster and has better errors. A separator makes it YAML again.
    let values = if text.trim_start().starts_with(['{', '[']) && !separates(text) {
        json(text)
    } else {
        yaml(text)
    };
    let mut numbered = Vec::new();
    for (at, value) in values.into_iter().enumerate() {
        let number = at + 1;
        let value = value.with_context(|| format!("{}, document {number}", file.display()))?;
        if !value.is_null() {
            numbered.push((number, value));
        }
    }
    Ok(numbered)
}

fn separates(text: &str) -> bool {
    text.lines().any(is_separator)
}

/// Returns the documents of JSON, one behind the other.
fn json(text: &str) -> Vec<Result<Value>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values
        .map(|value| value.map_err(anyhow::Error::from))
        .collect()
}

/// Splits a file at lines that begin with `---`, as kubectl does.
fn yaml(text: &str) -> Vec<Result<Value>> {
    let mut documents = vec![String::new()];
    for (number, line) in text.lines().enumerate() {
        if is_separator(line) {
            // Text before it is replaced by as many empty lines, so that errors have the line numbers of the file.
            documents.push("\n".repeat(number));
        }
        let line = line
            .strip_prefix("---")
            .filter(|_| is_separator(line))
            .unwrap_or(line);
        if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    // A file that begins with a separator has nothing before it.
    if documents.len() > 1 && documents[0].lines().all(is_blank) {
        documents.remove(0);
    }
    documents
        .iter()
        .map(|document| yaml_value(document))
        .collect()
}

fn is_separator(line: &str) -> bool {
    let rest = line.strip_prefix("---");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn yaml_value(document: &str) -> Result<Value> {
    if document.lines().all(is_blank) {
        return Ok(Value::Null);
    }
    Ok(lariat_core::yaml::read(document)?)
}

/// Adds an object, or the objects of a `List`.
fn unfold(location: DocumentLocation, object: Value, documents: &mut Vec<Document>) -> Result<()> {
    let document = Document { location, object };
    let kind = document.text("/kind");
    ensure!(!kind.is_empty(), "{}: it has no kind", document.location);
    ensure!(
        !document.text("/apiVersion").is_empty(),
        "{}: it has no apiVersion",
        document.title()
    );
    let items = document.object.get("items").and_then(Value::as_array);
    // Not only `List`: kubectl writes `ConfigMapList` and others where all items have one kind.
    if let Some(items) = items.filter(|_| kind.ends_with("List")) {
        for (at, item) in items.iter().enumerate() {
            let location = DocumentLocation {
                item: Some(at + 1),
                ..document.location.clone()
            };
            unfold(location, item.clone(), documents)?;
        }
        return Ok(());
    }
    let is_named = !document.text("/metadata/name").is_empty();
    let is_generated = !document.text("/metadata/generateName").is_empty();
    ensure!(
        is_named || is_generated,
        "{}: it has no name",
        document.title()
    );
    documents.push(document);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Result<Vec<String>, String> {
        let documents = parse(Path::new("a.yaml"), text).map_err(|error| format!("{error:#}"))?;
        Ok(documents.iter().map(Document::title).collect())
    }

    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n";

    #[test]
    fn documents_and_lists_are_distinguished() {
        let one = |number| Ok(vec![format!("a.yaml, document {number}, Pod web")]);
        assert_eq!(titles(POD), one(1));
        assert_eq!(titles(&format!("---\n{POD}")), one(1));
        assert_eq!(titles(&format!("# Copyright\n---\n{POD}---\n")), one(1));
        assert_eq!(
            titles(&format!("{POD}--- # more\n# nothing\n---\n{POD}"))
                .unwrap()
                .len(),
            2
        );
        assert_eq!(titles(""), Ok(vec![]));
        let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "b-"}}]}"#;
        let expected = [
            "a.yaml, document 1, item 1, Pod a",
            "a.yaml, document 1, item 2, Pod",
        ];
        assert_eq!(titles(list), Ok(expected.map(str::to_owned).to_vec()));
        assert_eq!(titles(&format!("{list}{list}")).unwrap().len(), 4);
        assert_eq!(
            titles(&format!("---\n{list}\n---\n{list}")).unwrap().len(),
            4
        );
    }

    #[test]
    fn values_are_those_of_kubectl() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  on: 'yes'\n  text: |\n    a\n    b\n\
            values: [1, 1.5, true, null, 0x10, \"1\", 0644, yes, 12:30]\n";
        let documents = parse(Path::new("a"), text).unwrap();
        let object = &documents[0].object;
        assert_eq!(
            object["values"],
            serde_json::json!([1, 1.5, true, null, 16, "1", 420, true, "12:30"])
        );
        assert_eq!(
            object["data"],
            serde_json::json!({"true": "yes", "text": "a\nb\n"})
        );
    }

    #[test]
    fn errors_have_file_document_and_line() {
        for (text, expected) in [
            (format!("{POD}---\na: [\n"), "a.yaml, document 2: "),
            (format!("{POD}---\n\n\na: b: c\n"), "line 7"),
            (
                "{\"kind\":".to_owned(),
                "a.yaml, document 1: EOF while parsing a value at line 1 column 8",
            ),
            (
                "kind: Pod\n".to_owned(),
                "a.yaml, document 1, Pod: it has no apiVersion",
            ),
            ("a: b\n".to_owned(), "a.yaml, document 1: it has no kind"),
            (
                "apiVersion: v1\nkind: Pod\n".to_owned(),
                "a.yaml, document 1, Pod: it has no name",
            ),
            (
                "just text\n".to_owned(),
                "a.yaml, document 1: it has no kind",
            ),
        ] {
            let error = titles(&text).unwrap_err();
            assert!(error.contains(expected), "no {expected:?} in {error:?}");
        }
    }
}
