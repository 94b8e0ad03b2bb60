//! Code becomes a function.
//!
//! The engine's AsyncFunction constructor joins its texts, so code such as
//! `}); other(); (async function () {` leaves the function. The text of what
//! came out is compared with what was put in; anything else is refused.

use rquickjs::function::Args;
use rquickjs::{Ctx, Exception, Function, Object, Value};

use crate::sandbox::job::Form;
use crate::sandbox::wire::Task;

/// Words that cannot name a parameter.
const RESERVED: [&str; 49] = [
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Whether JavaScript allows this as the name of a parameter.
pub fn is_name(name: &str) -> bool {
    let mut signs = name.chars();
    let starts = signs.next().is_some_and(|sign| sign.is_alphabetic() || sign == '_' || sign == '$');
    starts
        && signs.all(|sign| sign.is_alphanumeric() || sign == '_' || sign == '$')
        && !RESERVED.contains(&name)
}

/// The function of a task, and the arguments it is called with.
pub(super) fn build<'js>(ctx: &Ctx<'js>, task: &Task) -> rquickjs::Result<(Function<'js>, Args<'js>)> {
    let mut names = task.names.clone();
    let values = ctx.json_parse(task.values.get())?.into_array().ok_or(rquickjs::Error::Unknown)?;
    let mut given: Vec<Value<'js>> = values.iter().collect::<Result<_, _>>()?;
    if let Some(prelude) = &task.prelude {
        let made: Object = own(ctx, prelude)?.call(())?;
        for key in made.keys::<String>() {
            let key = key?;
            if !names.contains(&key) {
                given.push(made.get(key.as_str())?);
                names.push(key);
            }
        }
    }
    let function = match task.form {
        Form::Body => statements(ctx, &names, &task.code)?,
        Form::Formula => formula(ctx, &names, &task.code)?,
    };
    let mut args = Args::new(ctx.clone(), given.len());
    args.push_args(given)?;
    Ok((function, args))
}

/// Our own code as a function without parameters.
pub(super) fn own<'js>(ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<Function<'js>> {
    construct(ctx, "(function () {}).constructor", &[], code, "function")
}

pub(super) fn statements<'js>(
    ctx: &Ctx<'js>,
    names: &[String],
    code: &str,
) -> rquickjs::Result<Function<'js>> {
    construct(ctx, "(async function () {}).constructor", names, code, "async function")
}

/// One expression, or else statements. Text that is an expression between
/// brackets as well as between parentheses closes neither of them: it is one.
fn formula<'js>(ctx: &Ctx<'js>, names: &[String], code: &str) -> rquickjs::Result<Function<'js>> {
    let between = |open, close| statements(ctx, names, &format!("return {open}\n{code}\n{close}"));
    match between('[', ']').and_then(|_| between('(', ')')) {
        Ok(function) => Ok(function),
        Err(error) => {
            let said = ctx.catch();
            match statements(ctx, names, code) {
                Ok(function) => Ok(function),
                // What is wrong with the expression says more, unless it was never meant as one.
                Err(error) if code.contains("return") => Err(error),
                Err(_) => {
                    ctx.catch();
                    if said.is_undefined() { Err(error) } else { Err(ctx.throw(said)) }
                }
            }
        }
    }
}

fn construct<'js>(
    ctx: &Ctx<'js>,
    constructor: &str,
    names: &[String],
    code: &str,
    keyword: &str,
) -> rquickjs::Result<Function<'js>> {
    let constructor: Function = ctx.eval(constructor)?;
    let mut args = Args::new(ctx.clone(), names.len() + 1);
    args.push_args(names)?;
    args.push_arg(code)?;
    let function: Function = constructor.call_arg(args)?;
    let text: String =
        function.get::<_, Function>("toString")?.call((rquickjs::function::This(function.clone()),))?;
    let expected = format!("{keyword} anonymous({}\n) {{\n{code}\n}}", names.join(","));
    if text != expected {
        return Err(Exception::throw_syntax(ctx, "the code leaves its function"));
    }
    Ok(function)
}
