import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";

Object.defineProperty(globalThis, "location", { value: new URL("http://127.0.0.1:8787/"), configurable: true });
const { Markdown } = await import("../../src/markdown/Markdown.tsx");
const { highlight } = await import("../../src/markdown/highlight.ts");
const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));

test("HTML that a model writes is shown as text, and only safe links are links", () => {
  const drawn = html('<img src=x onerror=alert(1)> <script>alert(1)</script>\n\n[a](javascript:alert(1)) [b](https://example.com/b) ![c](https://example.com/c.png)');
  assert.doesNotMatch(drawn, /<script|<img|javascript:/);
  assert.match(drawn, /&lt;img src=x/);
  assert.match(drawn, /<a href="https:\/\/example.com\/b" target="_blank" rel="noreferrer noopener">/);
});

test("every beginning of an answer can be drawn", () => {
  const whole = "# One\n\n- **two** `three`\n- [four](https://example.com)\n\n```rust\nfn main() { \"five\" } // six\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> seven [1]\n\n1. eight";
  for (let end = 0; end <= whole.length; end += 1) assert.doesNotThrow(() => html(whole.slice(0, end)), whole.slice(0, end));
  assert.match(html(whole), /<table>[\s\S]*<blockquote>[\s\S]*<ol start="1">/);
});

test("colours change no character of the code", () => {
  const samples = ['let a = "b\\"c"; // d', "# no note in json: #fff", "SELECT 1 -- two", "it's `half", "0x1F 1_000.5e-3 ${x}"];
  for (const code of samples) {
    for (const language of ["", "rust", "json", "sql", "python"]) {
      assert.equal(highlight(code, language).map((token) => token.text).join(""), code, `${language}: ${code}`);
    }
  }
});
