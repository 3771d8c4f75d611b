//! Macros, written out as the server's parser does.

use std::rc::Rc;

use super::source::Fault;
use super::tree::{Kind, Literal, Loop, SelectMode, Tree};

/// The accumulator of a comprehension; no identifier can have this name.
pub(super) const RESULT: &str = "@result";
/// The variable for the list of `sortBy`.
const SORTED: &str = "@__sortBy_input__";

/// Returns a call, or what its macro stands for.
///
/// # Errors
///
/// An argument that must be a name is none.
pub(super) fn expand(
    at: usize,
    name: &str,
    target: Option<Tree>,
    mut arguments: Vec<Tree>,
    binds: bool,
) -> Result<Tree, Fault> {
    let count = arguments.len();
    let Some(target) = target else {
        return if name == "has" && count == 1 {
            has(at, arguments.remove(0))
        } else {
            Ok(Tree::call(at, name, arguments))
        };
    };
    let with = Macro { at };
    match (name, count) {
        ("all" | "exists" | "exists_one" | "existsOne" | "filter", 2) | ("map", 2 | 3) => {
            with.over(name, target, arguments, 1)
        }
        ("all" | "exists" | "exists_one" | "existsOne", 3)
        | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
            with.over(name, target, arguments, 2)
        }
        ("optMap" | "optFlatMap", 2) => with.optional(name, &Rc::new(target), arguments),
        ("sortBy", 2) => {
            let sorted = || with.name(SORTED);
            let keys = with.over("map", sorted(), arguments, 1)?;
            let call = Tree::method(
                at,
                "@sortByAssociatedKeys",
                Some(Rc::new(sorted())),
                vec![keys],
            );
            Ok(with.bound(SORTED, target, call))
        }
        ("bind", 3) if binds && matches!(&target.kind, Kind::Name(name) if name == "cel") => {
            let message = "cel.bind() variable names must be simple identifiers";
            let result = arguments.remove(2);
            let value = arguments.remove(1);
            Ok(with.bound(&simple(&arguments[0], message)?, value, result))
        }
        _ => Ok(Tree::method(at, name, Some(Rc::new(target)), arguments)),
    }
}

fn has(at: usize, argument: Tree) -> Result<Tree, Fault> {
    match argument.kind {
        Kind::Select(select) if select.mode == SelectMode::Plain => Ok(Tree::select(
            at,
            select.operand,
            select.field,
            SelectMode::Test,
        )),
        _ => Err(Fault {
            at: argument.at,
            message: "invalid argument to has() macro".to_owned(),
        }),
    }
}

/// Returns the name that an argument is.
fn simple(argument: &Tree, otherwise: &str) -> Result<String, Fault> {
    match &argument.kind {
        Kind::Name(name) => Ok(name.clone()),
        _ => Err(Fault {
            at: argument.at,
            message: otherwise.to_owned(),
        }),
    }
}

/// What a loop does: the beginning, condition, step and result.
struct Body {
    begin: Tree,
    condition: Tree,
    step: Tree,
    result: Tree,
}

/// Makes what a macro stands for: all parts are at its bracket.
#[derive(Clone, Copy)]
struct Macro {
    at: usize,
}

impl Macro {
    fn name(self, name: &str) -> Tree {
        Tree::new(self.at, Kind::Name(name.to_owned()))
    }

    fn result(self) -> Tree {
        self.name(RESULT)
    }

    fn literal(self, literal: Literal) -> Tree {
        Tree::new(self.at, Kind::Literal(literal))
    }

    fn list(self, items: Vec<Tree>) -> Tree {
        let items = items.into_iter().map(|item| (false, item)).collect();
        Tree::new(self.at, Kind::List(items))
    }

    fn call(self, name: &str, arguments: Vec<Tree>) -> Tree {
        Tree::call(self.at, name, arguments)
    }

    /// Writes out a macro over a range, whose first arguments are `variables` names.
    fn over(
        self,
        name: &str,
        range: Tree,
        mut arguments: Vec<Tree>,
        variables: usize,
    ) -> Result<Tree, Fault> {
        let message = match (name, variables) {
            ("map" | "filter", _) => "argument is not an identifier",
            _ => "argument must be a simple name",
        };
        let names = &arguments[..variables];
        let mut found = Vec::new();
        for argument in names {
            found.push(simple(argument, message)?);
        }
        if variables == 2 && found[0] == found[1] {
            let message = format!("duplicate variable name: {}", found[0]);
            let at = arguments[1].at;
            return Err(Fault { at, message });
        }
        let overwriting = |name: &String| name == RESULT || name == "__result__";
        if let Some(at) = found.iter().position(overwriting) {
            return Err(Fault {
                at: arguments[at].at,
                message: "iteration variable overwrites accumulator variable".to_owned(),
            });
        }
        let first = arguments[0].clone();
        arguments.drain(..variables);
        let Body {
            begin,
            condition,
            step,
            result,
        } = self.body(name, first, arguments);
        let kind = Kind::Loop(Box::new(Loop {
            range,
            variables: found,
            result_name: RESULT.to_owned(),
            begin,
            condition,
            step,
            result,
        }));
        Ok(Tree::new(self.at, kind))
    }

    /// Returns what a loop does.
    fn body(self, name: &str, variable: Tree, mut arguments: Vec<Tree>) -> Body {
        let always = || self.literal(Literal::Bool);
        let Some(last) = arguments.pop() else {
            return Body {
                begin: always(),
                condition: always(),
                step: always(),
                result: always(),
            };
        };
        let choose = |condition, step| self.call("_?_:_", vec![condition, step, self.result()]);
        let add = |item| {
            let list = self.list(vec![item]);
            self.call("_+_", vec![self.result(), list])
        };
        let (begin, condition, step, result) = match name {
            "all" | "exists" => {
                let (step, tested) = match name {
                    "all" => ("_&&_", self.result()),
                    _ => ("_||_", self.call("!_", vec![self.result()])),
                };
                let condition = self.call("@not_strictly_false", vec![tested]);
                let step = self.call(step, vec![self.result(), last]);
                (always(), condition, step, self.result())
            }
            "exists_one" | "existsOne" => {
                let one = || self.literal(Literal::Int(1));
                let step = choose(last, self.call("_+_", vec![self.result(), one()]));
                let result = self.call("_==_", vec![self.result(), one()]);
                (self.literal(Literal::Int(0)), always(), step, result)
            }
            "filter" => {
                let step = choose(last, add(variable));
                (self.list(Vec::new()), always(), step, self.result())
            }
            _ => {
                let (begin, step) = match name {
                    "map" | "transformList" => (self.list(Vec::new()), add(last)),
                    _ => {
                        let mut inserted = vec![self.result()];
                        inserted.extend((name == "transformMap").then_some(variable));
                        inserted.push(last);
                        let map = Tree::new(self.at, Kind::Map(Vec::new()));
                        (map, self.call("cel.@mapInsert", inserted))
                    }
                };
                let step = match arguments.pop() {
                    Some(condition) => choose(condition, step),
                    None => step,
                };
                (begin, always(), step, self.result())
            }
        };
        Body {
            begin,
            condition,
            step,
            result,
        }
    }

    /// Binds a value to a name in `result`: a comprehension over an empty list.
    fn bound(self, name: &str, value: Tree, result: Tree) -> Tree {
        let kind = Kind::Loop(Box::new(Loop {
            range: self.list(Vec::new()),
            variables: vec!["#unused".to_owned()],
            result_name: name.to_owned(),
            begin: value,
            condition: self.literal(Literal::Bool),
            step: self.name(name),
            result,
        }));
        Tree::new(self.at, kind)
    }

    fn optional(
        self,
        name: &str,
        target: &Rc<Tree>,
        mut arguments: Vec<Tree>,
    ) -> Result<Tree, Fault> {
        let method = |name| Tree::method(self.at, name, Some(Rc::clone(target)), Vec::new());
        let message = format!("{name}() variable name must be a simple identifier");
        let result = arguments.remove(1);
        let variable = simple(&arguments[0], &message)?;
        let mut mapped = self.bound(&variable, method("value"), result);
        if name == "optMap" {
            mapped = self.call("optional.of", vec![mapped]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call("_?_:_", vec![method("hasValue"), mapped, none]))
    }
}
