//! One piece of code as a syntax tree.
//!
//! The code stands inside an async function here as it does when it runs. The
//! parser descends by recursion, so it works on a thread with a stack of its
//! own, and what nests without bound is refused before it starts.

use std::thread;

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, Statement};
use oxc_ast_visit::Visit;
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};

use super::Level;

/// Only what is used of it is ever backed by memory.
const STACK_BYTES: usize = 512 << 20;
/// Brackets inside brackets.
const BRACKETS: usize = 256;
/// Findings of one piece.
const MOST: usize = 100;
/// A text of this length without a space is data, or code in disguise.
const LONG_TEXT: usize = 2_000;
const HEAD: &str = "async function piece(args) {\n";

/// What was seen in one piece of code.
pub(super) struct Seen {
    pub(super) nodes: usize,
    pub(super) parses: bool,
    pub(super) sights: Vec<Sight>,
}

pub(super) struct Sight {
    pub(super) level: Level,
    pub(super) rule: &'static str,
    pub(super) line: usize,
    pub(super) text: String,
}

/// Names that make code out of text, or that are not there for a reason.
const FORBIDDEN: [(&str, &str, &str); 11] = [
    ("eval", "makes-code", "eval makes code out of text"),
    ("Function", "makes-code", "Function makes code out of text"),
    ("AsyncFunction", "makes-code", "AsyncFunction makes code out of text"),
    ("GeneratorFunction", "makes-code", "GeneratorFunction makes code out of text"),
    ("WebAssembly", "makes-code", "WebAssembly is code that nobody reads"),
    ("host", "asks-the-gateway", "host is the gateway's own door: use fetch"),
    ("XMLHttpRequest", "reaches-out", "only fetch reaches out, and only to hosts of the permissions"),
    ("WebSocket", "reaches-out", "only fetch reaches out, and only to hosts of the permissions"),
    ("EventSource", "reaches-out", "only fetch reaches out, and only to hosts of the permissions"),
    ("importScripts", "loads-code", "importScripts loads code that nobody signed"),
    ("require", "loads-code", "require loads code that nobody signed"),
];

/// Names of one place only: the plugin runs elsewhere, or reaches too far there.
const NOTICED: [&str; 11] = [
    "globalThis",
    "window",
    "self",
    "document",
    "localStorage",
    "sessionStorage",
    "indexedDB",
    "navigator",
    "process",
    "Deno",
    "Proxy",
];

/// Fields that lead from a value to the makers of values.
const FIELDS: [&str; 4] = ["constructor", "__proto__", "__defineGetter__", "__lookupGetter__"];

pub(super) fn look(code: &str, fetches: bool) -> Seen {
    if nests_too_deep(code) {
        return unreadable(format!("brackets nest deeper than {BRACKETS} levels"));
    }
    let seen = thread::scope(|scope| {
        let worker = thread::Builder::new().name("plugin-audit".to_owned()).stack_size(STACK_BYTES);
        worker.spawn_scoped(scope, || parse(code, fetches)).ok()?.join().ok()
    });
    seen.unwrap_or_else(|| unreadable("the parser did not come to an end".to_owned()))
}

fn unreadable(why: String) -> Seen {
    let sight = Sight { level: Level::Forbidden, rule: "not-javascript", line: 0, text: why };
    Seen { nodes: 0, parses: false, sights: vec![sight] }
}

/// Counts brackets wherever they stand: a text full of them is refused too.
fn nests_too_deep(code: &str) -> bool {
    let mut depth = 0usize;
    code.bytes().any(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > BRACKETS
    })
}

fn parse(code: &str, fetches: bool) -> Seen {
    let text = format!("{HEAD}{code}\n}}");
    let arena = Allocator::default();
    let parsed = Parser::new(&arena, &text, SourceType::script()).parse();
    if let Some(error) = parsed.diagnostics.errors().next() {
        return unreadable(error.message.to_string());
    }
    if parsed.panicked {
        return unreadable("it is not JavaScript".to_owned());
    }
    // Code that closes the function and goes on would run outside of it.
    let [Statement::FunctionDeclaration(function)] = &parsed.program.body[..] else {
        return unreadable("it closes the function that it is the body of".to_owned());
    };
    if function.span != Span::new(0, u32::try_from(text.len()).unwrap_or(u32::MAX)) {
        return unreadable("it closes the function that it is the body of".to_owned());
    }
    let mut walk = Walk { text: &text, fetches, nodes: 0, sights: Vec::new() };
    walk.visit_program(&parsed.program);
    Seen { nodes: walk.nodes, parses: true, sights: walk.sights }
}

struct Walk<'t> {
    text: &'t str,
    fetches: bool,
    nodes: usize,
    sights: Vec<Sight>,
}

impl Walk<'_> {
    fn tell(&mut self, level: Level, rule: &'static str, at: Span, text: impl Into<String>) {
        if self.sights.len() >= MOST {
            return;
        }
        let before = self.text.get(..at.start as usize).unwrap_or_default();
        // The first line is ours.
        let line = before.bytes().filter(|byte| *byte == b'\n').count();
        self.sights.push(Sight { level, rule, line, text: text.into() });
    }

    fn name(&mut self, name: &str, at: Span) {
        if let Some((_, rule, text)) = FORBIDDEN.iter().find(|(one, ..)| *one == name) {
            self.tell(Level::Forbidden, rule, at, *text);
        }
        if NOTICED.contains(&name) {
            self.tell(Level::Notice, "far-reaching-name", at, format!("uses {name}"));
        }
        if name == "fetch" && !self.fetches {
            self.tell(Level::Forbidden, "fetch-without-permission", at, "uses fetch and asks for no host");
        }
    }

    fn field(&mut self, name: &str, at: Span) {
        if FIELDS.contains(&name) {
            let text = format!("{name} leads to what makes code out of text");
            self.tell(Level::Forbidden, "makes-code", at, text);
        }
    }

    fn text(&mut self, text: &str, at: Span) {
        if text.len() >= LONG_TEXT && !text.contains(char::is_whitespace) {
            let long = format!("a text of {} bytes without a space", text.len());
            self.tell(Level::Notice, "long-text", at, long);
        }
    }
}

impl<'a> Visit<'a> for Walk<'_> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.nodes += 1;
        let at = kind.span();
        match kind {
            AstKind::IdentifierReference(it) => self.name(&it.name, at),
            AstKind::StaticMemberExpression(it) => {
                self.field(&it.property.name, at);
                // globalThis.fetch is fetch.
                if matches!(&it.object, Expression::Identifier(of) if NOTICED.contains(&of.name.as_str())) {
                    self.name(&it.property.name, at);
                }
            }
            AstKind::ComputedMemberExpression(it) => match it.static_property_name() {
                Some(name) => self.field(&name, at),
                None if matches!(&it.object, Expression::Identifier(of) if NOTICED.contains(&of.name.as_str())) =>
                {
                    self.tell(Level::Forbidden, "hidden-name", at, "a global whose name is computed");
                }
                None => {}
            },
            AstKind::BindingProperty(it) => {
                // const {constructor: make} = () => {}
                if let Some(name) = it.key.static_name() {
                    self.field(&name, at);
                }
            }
            AstKind::ImportExpression(_) => {
                self.tell(Level::Forbidden, "loads-code", at, "import loads code that nobody signed");
            }
            AstKind::WithStatement(_) => {
                self.tell(Level::Forbidden, "with", at, "with hides which names are meant");
            }
            AstKind::DebuggerStatement(_) => self.tell(Level::Notice, "debugger", at, "debugger"),
            AstKind::WhileStatement(it) if is_true(&it.test) => {
                self.tell(Level::Notice, "endless-loop", at, "a loop without an end of its own");
            }
            AstKind::ForStatement(it) if it.test.is_none() => {
                self.tell(Level::Notice, "endless-loop", at, "a loop without an end of its own");
            }
            AstKind::StringLiteral(it) => self.text(&it.value, at),
            AstKind::TemplateElement(it) => self.text(&it.value.raw, at),
            _ => {}
        }
    }
}

fn is_true(test: &Expression<'_>) -> bool {
    match test {
        Expression::BooleanLiteral(it) => it.value,
        Expression::NumericLiteral(it) => it.value != 0.0,
        _ => false,
    }
}
