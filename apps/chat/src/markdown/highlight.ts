/** Colours for code: words, texts, notes and numbers. It knows no grammar and never fails. */
export interface Token {
  kind: "word" | "text" | "note" | "number" | "plain";
  text: string;
}

const WORDS = new Set(
  (
    "as async await break case catch class const continue def default defer del do elif else enum except export extends " +
    "false finally fn for from func function go if impl import in interface is lambda let loop match mod module mut new nil none null " +
    "or and not package pass print pub raise return select self static struct super switch this throw trait true try type " +
    "undefined union unsafe use using var void where while with yield echo then fi done export local SELECT FROM WHERE INSERT " +
    "UPDATE DELETE CREATE TABLE INTO VALUES JOIN GROUP ORDER BY LIMIT"
  ).split(" "),
);

const PIECES =
  /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|#(?![0-9a-fA-F]{3,8}\b)[^\n]*|--[^\n]*)|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|`(?:\\.|[^`\\])*`?)|(\b\d[\d_.]*(?:[eE][+-]?\d+)?\b)|([A-Za-z_$][\w$]*)/g;

/** Code longer than this is shown as it is. */
const MOST = 40_000;

export function highlight(code: string, language: string): Token[] {
  if (code.length > MOST || ["text", "txt", "plain", "markdown", "md"].includes(language)) return [{ kind: "plain", text: code }];
  const tokens: Token[] = [];
  let at = 0;
  const push = (kind: Token["kind"], text: string) => {
    const last = tokens.at(-1);
    if (last?.kind === kind) last.text += text;
    else if (text) tokens.push({ kind, text });
  };
  // In JSON and C-like code a `#` or `--` begins no note.
  const hash = /^(py|python|sh|bash|shell|zsh|toml|yaml|yml|rb|ruby|make|dockerfile|conf|ini|rust|rs)$/.test(language);
  const dashes = /^(sql|lua|haskell|hs)$/.test(language);
  for (const match of code.matchAll(PIECES)) {
    push("plain", code.slice(at, match.index));
    const [whole, note, text, number, word] = match;
    at = match.index + whole.length;
    if (note !== undefined) {
      const real = note.startsWith("/") ? !hash || language.startsWith("r") : note.startsWith("#") ? hash : dashes;
      if (real) push("note", note);
      else {
        // Only its mark is passed over.
        push("plain", note.slice(0, 1));
        push("plain", note.slice(1));
      }
    } else if (text !== undefined) push("text", text);
    else if (number !== undefined) push("number", number);
    else push(word !== undefined && WORDS.has(word) ? "word" : "plain", whole);
  }
  push("plain", code.slice(at));
  return tokens;
}
