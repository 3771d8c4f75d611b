//! Inside a crate, modules use modules of lower layers: the layers are in `layers.txt` beside this file.
//!
//! Modules of one layer do not know each other. Tests are left out. Files that use each other in a circle are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How many of a hundred files of a crate may use each other in circles.
const CIRCLES: usize = 8;

#[test]
fn modules_use_what_stands_below_them() {
    let table = table();
    assert!(table.len() >= 6, "the table of layers was not found");
    let mut wrong = Vec::new();
    for (name, layers) in &table {
        let krate = Crate::read(name);
        krate.check_table(layers, &mut wrong);
        krate.check_layers(layers, &mut wrong);
        krate.check_circles(&mut wrong);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn paths_are_found_in_code() {
    let code = "use crate::a::{B, c::{self, D}};\nfn f() { super::e::g() }\n// crate::h\nuse other_crate::x;";
    let found: Vec<String> = paths(&without_comments(code))
        .iter()
        .map(|path| path.join("::"))
        .collect();
    assert_eq!(
        found,
        [
            "crate::a::B",
            "crate::a::c::self",
            "crate::a::c::D",
            "super::e::g"
        ]
    );
}

/// The layers of a crate, lowest first; modules of one layer do not know each other.
type Layers = Vec<Vec<String>>;

/// A module, as the names from the root of its crate.
type Module = Vec<String>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads the table: the name of a crate at the margin, and below it a line for each layer.
fn table() -> BTreeMap<String, Layers> {
    let mut all: BTreeMap<String, Layers> = BTreeMap::new();
    let mut last = String::new();
    let lines = include_str!("layers.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with(' ') {
            let names = line.split(',').map(|name| name.trim().to_owned());
            all.entry(last.clone()).or_default().push(names.collect());
        } else {
            last = line.to_owned();
        }
    }
    all
}

/// The files of a crate and what they use of it.
struct Crate {
    name: String,
    files: BTreeMap<Module, String>,
    /// By the module they are in: the names that are re-exported, and where from.
    reexports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Crate {
    fn read(name: &str) -> Self {
        let folder = name.trim_start_matches("lariat-");
        let wings = ["crates", "cluster", "integration"]
            .map(|wing| workspace().join(wing).join(folder).join("src"));
        let source = wings.into_iter().find(|source| source.exists());
        let source = source.unwrap_or_else(|| panic!("there is no crate {name}"));
        let mut files = BTreeMap::new();
        read_folder(&source, &Module::new(), &mut files);
        let reexports = files
            .iter()
            .map(|(module, code)| (module.clone(), reexports(code)))
            .collect();
        Self {
            name: name.to_owned(),
            files,
            reexports,
        }
    }

    fn check_table(&self, layers: &Layers, wrong: &mut Vec<String>) {
        let modules: BTreeSet<&String> = self
            .files
            .keys()
            .filter_map(|module| module.first())
            .collect();
        let listed: BTreeSet<&String> = layers.iter().flatten().collect();
        for module in modules.symmetric_difference(&listed) {
            wrong.push(format!(
                "{}: {module} is in layers.txt or in the crate, not in both",
                self.name
            ));
        }
    }

    fn check_layers(&self, layers: &Layers, wrong: &mut Vec<String>) {
        let layer_of = |module: &Module| {
            let name = module.first()?;
            layers.iter().position(|layer| layer.contains(name))
        };
        for (module, used) in self.edges() {
            if let (Some(own), Some(other)) = (layer_of(&module), layer_of(&used))
                && module[0] != used[0]
                && other >= own
            {
                let (module, used) = (module.join("::"), used.join("::"));
                wrong.push(format!(
                    "{}: {module} uses {used}, which does not stand below it",
                    self.name
                ));
            }
        }
    }

    fn check_circles(&self, wrong: &mut Vec<String>) {
        let mut reached: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, used) in self.edges() {
            reached.entry(module).or_default().insert(used);
        }
        // The transitive closure: crates have some hundred files.
        loop {
            let before = reached.clone();
            for all in reached.values_mut() {
                let further: Vec<_> = all
                    .iter()
                    .filter_map(|module| before.get(module))
                    .flatten()
                    .cloned()
                    .collect();
                all.extend(further);
            }
            if reached == before {
                break;
            }
        }
        let circular: Vec<String> = reached
            .iter()
            .filter(|(module, all)| all.contains(*module))
            .map(|(module, _)| module.join("::"))
            .collect();
        if circular.len() * 100 > self.files.len() * CIRCLES {
            let (count, of) = (circular.len(), self.files.len());
            wrong.push(format!(
                "{}: {count} of {of} files are in circles: {}",
                self.name,
                circular.join(", ")
            ));
        }
    }

    /// Returns which file uses which other.
    fn edges(&self) -> BTreeSet<(Module, Module)> {
        let mut edges = BTreeSet::new();
        for (module, code) in &self.files {
            for path in paths(code) {
                let used = self.file_of(absolute(module, &path));
                if used != *module {
                    edges.insert((module.clone(), used));
                }
            }
        }
        edges
    }

    /// Returns the file an item is in, behind all re-exports.
    fn file_of(&self, mut path: Module) -> Module {
        // No item is re-exported through more folders than that.
        for _ in 0..8 {
            let mut module = path.clone();
            while !module.is_empty() && !self.files.contains_key(&module) {
                module.pop();
            }
            let from = path
                .get(module.len())
                .and_then(|item| self.reexports.get(&module)?.get(item));
            match from {
                Some(from) => {
                    let rest = path.split_off(module.len());
                    path = [module, from.clone(), rest].concat();
                }
                None => return module,
            }
        }
        Module::new()
    }
}

fn read_folder(folder: &Path, module: &Module, files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let within = [module.clone(), vec![name.clone()]].concat();
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        if path.is_dir() {
            read_folder(&path, &within, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let code = fs::read_to_string(&path).expect("a source file");
            let code = without_tests(&code);
            let is_table = ["mod", "lib", "main"].contains(&&*name);
            let place = if is_table { module.clone() } else { within };
            files.insert(place, without_comments(&code));
        }
    }
}

/// Leaves out modules of tests, which stand at the end of a file, or in files of their own.
fn without_tests(code: &str) -> String {
    let inline = code.find("\nmod tests {");
    code[..inline.unwrap_or(code.len())].replace("#[cfg(test)]\nmod tests;", "")
}

fn without_comments(code: &str) -> String {
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the names that a module re-exports of its children.
fn reexports(code: &str) -> BTreeMap<String, Module> {
    let mut all = BTreeMap::new();
    for statement in code.split(';') {
        let Some((_, path)) = statement.split_once("use ") else {
            continue;
        };
        let is_public = statement.trim_start().starts_with("pub") || statement.contains("\npub");
        let first = path.split("::").next().unwrap_or_default();
        if !is_public || ["crate", "super"].contains(&first) {
            continue;
        }
        for mut path in tree(&mut words(path).into_iter().peekable()) {
            let item = path.pop().unwrap_or_default();
            if !path.is_empty() {
                all.insert(item, path);
            }
        }
    }
    all
}

/// Returns every path in a piece of code that begins with `crate` or `super`.
fn paths(code: &str) -> Vec<Module> {
    let mut all = Vec::new();
    let mut words = words(code).into_iter().peekable();
    let mut before = String::new();
    while let Some(word) = words.peek() {
        if ["crate", "super"].contains(&&**word) && before != "::" && before != "(" {
            all.extend(tree(&mut words).into_iter().filter(|path| path.len() > 1));
            before.clear();
        } else {
            before = words.next().unwrap_or_default();
        }
    }
    all
}

/// Reads a path, or the paths of a group.
fn tree(words: &mut std::iter::Peekable<std::vec::IntoIter<String>>) -> Vec<Module> {
    let mut path = Module::new();
    while let Some(word) = words.peek().cloned() {
        if word == "{" {
            words.next();
            let mut all = Vec::new();
            while words.peek().is_some_and(|word| word != "}") {
                let inner = tree(words);
                all.extend(
                    inner
                        .into_iter()
                        .map(|inner| [path.clone(), inner].concat()),
                );
                words.next_if(|word| word == ",");
            }
            words.next();
            return all;
        }
        if !word.starts_with(|first: char| first.is_alphanumeric() || first == '_') {
            words.next_if(|word| word != "}" && word != ",");
            break;
        }
        path.push(word);
        words.next();
        if words.next_if(|word| word == "::").is_none() {
            // `as` gives it another name.
            while words.peek().is_some_and(|word| word == "as") {
                words.next();
                words.next();
            }
            break;
        }
    }
    vec![path]
}

/// Cuts code into names, `::` and single characters.
fn words(code: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        all.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    all
}

/// Makes a path of a module one from the root of the crate.
fn absolute(module: &Module, path: &Module) -> Module {
    let mut at = if path[0] == "crate" {
        Module::new()
    } else {
        module.clone()
    };
    let mut names = path.iter().peekable();
    names.next_if(|name| *name == "crate");
    while names.next_if(|name| *name == "super").is_some() {
        at.pop();
    }
    at.extend(names.filter(|name| *name != "self").cloned());
    at
}
