//! The parser of expressions.
//!
//! TokenKind it cannot read is `None`: the interpreter's parser has reported it, or nothing is known of it.

use super::macros;
use super::source::Fault;
use super::token::{Token, TokenKind, is_reserved, tokens};
use super::tree::{Entry, Kind, SelectMode, Setting, Tree};

/// Operators of two operands, from those that bind least.
const LEVELS: [&[&str]; 3] = [
    &["<", "<=", ">=", ">", "==", "!=", "in"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Parses an expression; `binds` enables `cel.bind`.
pub(super) fn parse(text: &str, binds: bool) -> Option<Result<Tree, Vec<Fault>>> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        next: 0,
        binds,
        faults: Vec::new(),
    };
    let tree = parser.expression()?;
    if !matches!(parser.peek().kind, TokenKind::End) {
        return None;
    }
    Some(if parser.faults.is_empty() {
        Ok(tree)
    } else {
        Err(parser.faults)
    })
}

struct Parser {
    tokens: Vec<Token>,
    /// The index of the next token; the last one, the end, is never taken.
    next: usize,
    binds: bool,
    faults: Vec<Fault>,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next]
    }

    /// Takes a sign if it comes next; returns where it is.
    fn take(&mut self, sign: &str) -> Option<usize> {
        self.take_of(&[sign]).map(|(at, _)| at)
    }

    fn take_of(&mut self, signs: &[&str]) -> Option<(usize, &'static str)> {
        let token = self.peek();
        match token.kind {
            TokenKind::Sign(sign) if signs.contains(&sign) => {
                let at = token.at;
                self.next += 1;
                Some((at, sign))
            }
            _ => None,
        }
    }

    fn name(&mut self) -> Option<(usize, String)> {
        let token = self.peek();
        let TokenKind::Name(name) = &token.kind else {
            return None;
        };
        let found = (token.at, name.clone());
        self.next += 1;
        Some(found)
    }

    fn expression(&mut self) -> Option<Tree> {
        let condition = self.logic("||")?;
        let Some(at) = self.take("?") else {
            return Some(condition);
        };
        let then = self.logic("||")?;
        self.take(":")?;
        let otherwise = self.expression()?;
        Some(Tree::call(at, "_?_:_", vec![condition, then, otherwise]))
    }

    /// Parses operands of `&&` or `||`, which are one call with all of them.
    fn logic(&mut self, sign: &str) -> Option<Tree> {
        let operand = |parser: &mut Self| match sign {
            "||" => parser.logic("&&"),
            _ => parser.binary(0),
        };
        let mut terms = vec![operand(self)?];
        let mut place = 0;
        while let Some(at) = self.take(sign) {
            place = at;
            terms.push(operand(self)?);
        }
        Some(if terms.len() == 1 {
            terms.remove(0)
        } else {
            Tree::call(place, &format!("_{sign}_"), terms)
        })
    }

    fn binary(&mut self, level: usize) -> Option<Tree> {
        let Some(signs) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some((at, sign)) = self.take_of(signs) {
            let right = self.binary(level + 1)?;
            let name = match sign {
                "in" => "@in".to_owned(),
                sign => format!("_{sign}_"),
            };
            left = Tree::call(at, &name, vec![left, right]);
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Tree> {
        let Some((at, sign)) = self.take_of(&["!", "-"]) else {
            return self.member();
        };
        let mut count = 1;
        while self.take(sign).is_some() {
            count += 1;
        }
        // A sign in front of a number belongs to it.
        let token = &mut self.tokens[self.next];
        if sign == "-" && count == 1 && token.kind.negate() {
            token.at = at;
            return self.member();
        }
        let operand = self.member()?;
        Some(match count % 2 {
            0 => operand,
            _ => Tree::call(at, &format!("{sign}_"), vec![operand]),
        })
    }

    fn member(&mut self) -> Option<Tree> {
        let mut tree = self.primary()?;
        while let Some((at, sign)) = self.take_of(&[".", "["]) {
            let optional = self.take("?").is_some();
            if sign == "[" {
                let index = self.expression()?;
                self.take("]")?;
                let name = if optional { "_[?_]" } else { "_[_]" };
                tree = Tree::call(at, name, vec![tree, index]);
                continue;
            }
            let (_, name) = self.name()?;
            if optional {
                tree = Tree::select(at, tree, name, SelectMode::Optional);
            } else if let Some(open) = self.take("(") {
                let arguments = self.arguments()?;
                tree = self.called(open, name, Some(tree), arguments);
            } else {
                tree = Tree::select(at, tree, name, SelectMode::Plain);
            }
        }
        Some(tree)
    }

    fn called(
        &mut self,
        at: usize,
        name: String,
        target: Option<Tree>,
        arguments: Vec<Tree>,
    ) -> Tree {
        macros::expand(at, &name, target, arguments, self.binds).unwrap_or_else(|fault| {
            self.faults.push(fault);
            Tree::new(at, Kind::Name(name))
        })
    }

    fn arguments(&mut self) -> Option<Vec<Tree>> {
        let mut arguments = Vec::new();
        if self.take(")").is_some() {
            return Some(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take(")").is_some() {
                return Some(arguments);
            }
            self.take(",")?;
        }
    }

    fn primary(&mut self) -> Option<Tree> {
        if let TokenKind::Literal(literal) = self.peek().kind.clone() {
            let at = self.peek().at;
            self.next += 1;
            return Some(Tree::new(at, Kind::Literal(literal)));
        }
        match self.take_of(&["(", "[", "{", "."]) {
            Some((_, "(")) => {
                let inner = self.expression()?;
                self.take(")")?;
                Some(inner)
            }
            Some((at, "[")) => self.list(at),
            Some((at, "{")) => self.map(at),
            Some((dot, _)) => self.named(Some(dot)),
            None => self.named(None),
        }
    }

    /// Parses what begins with a name: a variable, a call or a struct.
    fn named(&mut self, dot: Option<usize>) -> Option<Tree> {
        let (at, first) = self.name()?;
        let leading = if dot.is_some() { "." } else { "" };
        let mut name = format!("{leading}{first}");
        if let Some(ids) = self.ids_of_struct() {
            for id in ids {
                name = format!("{name}.{id}");
            }
            let open = self.take("{")?;
            return self.settings(open, name);
        }
        if is_reserved(&first) {
            let message = format!("reserved identifier: {first}");
            let at = dot.unwrap_or(at);
            self.faults.push(Fault { at, message });
        }
        if let Some(open) = self.take("(") {
            let arguments = self.arguments()?;
            return Some(self.called(open, name, None, arguments));
        }
        Some(Tree::new(at, Kind::Name(name)))
    }

    /// Takes further parts of a name if a brace follows them.
    fn ids_of_struct(&mut self) -> Option<Vec<String>> {
        let (begin, mut ids) = (self.next, Vec::new());
        loop {
            match self.peek().kind {
                TokenKind::Sign("{") => return Some(ids),
                TokenKind::Sign(".") => self.next += 1,
                _ => break,
            }
            match self.name() {
                Some((_, id)) => ids.push(id),
                None => break,
            }
        }
        self.next = begin;
        None
    }

    fn list(&mut self, at: usize) -> Option<Tree> {
        let mut items = Vec::new();
        while self.take("]").is_none() {
            let optional = self.take("?").is_some();
            items.push((optional, self.expression()?));
            self.comma("]")?;
        }
        Some(Tree::new(at, Kind::List(items)))
    }

    fn map(&mut self, at: usize) -> Option<Tree> {
        let mut entries = Vec::new();
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            self.take(":")?;
            let value = self.expression()?;
            entries.push(Entry {
                optional,
                key,
                value,
            });
            self.comma("}")?;
        }
        Some(Tree::new(at, Kind::Map(entries)))
    }

    fn settings(&mut self, open: usize, name: String) -> Option<Tree> {
        let mut settings = Vec::new();
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let (_, field) = self.name()?;
            let at = self.take(":")?;
            let value = self.expression()?;
            settings.push(Setting {
                at,
                optional,
                field,
                value,
            });
            self.comma("}")?;
        }
        Some(Tree::new(open, Kind::Struct(name, settings)))
    }

    /// Takes a comma, which may be left out before the end of a list.
    fn comma(&mut self, end: &str) -> Option<()> {
        match self.peek().kind {
            TokenKind::Sign(sign) if sign == end => Some(()),
            _ => self.take(",").map(|_| ()),
        }
    }
}
