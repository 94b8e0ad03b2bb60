// TextEncoder and TextDecoder, for UTF-8.
(function (native) {
    'use strict';
    const bytesOf = (input) => {
        if (input === undefined) return new Uint8Array(0);
        if (input instanceof ArrayBuffer) return new Uint8Array(input);
        if (ArrayBuffer.isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
        throw new TypeError('The input is neither an ArrayBuffer nor a view of one');
    };
    // Bytes cross to the process as text, one sign each.
    const PIECE = 8192;
    const binary = (bytes) => {
        let text = '';
        for (let at = 0; at < bytes.length; at += PIECE) {
            text += String.fromCharCode.apply(null, bytes.subarray(at, at + PIECE));
        }
        return text;
    };
    class TextEncoder {
        get encoding() {
            return 'utf-8';
        }
        encode(input = '') {
            return native.encode(String(input).toWellFormed());
        }
        encodeInto(input, into) {
            let read = 0;
            let written = 0;
            for (const sign of String(input).toWellFormed()) {
                const bytes = native.encode(sign);
                if (written + bytes.length > into.length) break;
                into.set(bytes, written);
                written += bytes.length;
                read += sign.length;
            }
            return { read, written };
        }
    }
    // How many bytes at the end are the beginning of a sign that is not complete.
    const unfinished = (bytes) => {
        for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
            const byte = bytes[bytes.length - back];
            if (byte >= 0xc0) {
                const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
                return needs > back ? back : 0;
            }
            if (byte < 0x80) return 0;
        }
        return 0;
    };
    class TextDecoder {
        #fatal;
        #keepMark;
        #rest = new Uint8Array(0);
        #begun = false;
        constructor(label = 'utf-8', options = {}) {
            const known = ['utf-8', 'utf8', 'unicode-1-1-utf-8'];
            if (!known.includes(String(label).trim().toLowerCase())) {
                throw new RangeError(`The encoding ${label} is not supported, only utf-8 is`);
            }
            this.#fatal = Boolean(options?.fatal);
            this.#keepMark = Boolean(options?.ignoreBOM);
        }
        get encoding() {
            return 'utf-8';
        }
        get fatal() {
            return this.#fatal;
        }
        get ignoreBOM() {
            return this.#keepMark;
        }
        decode(input, options = {}) {
            const more = Boolean(options?.stream);
            const fresh = bytesOf(input);
            let bytes = new Uint8Array(this.#rest.length + fresh.length);
            bytes.set(this.#rest);
            bytes.set(fresh, this.#rest.length);
            const keep = more ? unfinished(bytes) : 0;
            this.#rest = bytes.slice(bytes.length - keep);
            bytes = bytes.subarray(0, bytes.length - keep);
            let text = native.decode(binary(bytes), this.#fatal);
            if (!this.#begun && !this.#keepMark && text.startsWith('\ufeff')) text = text.slice(1);
            this.#begun = more && (this.#begun || bytes.length > 0);
            return text;
        }
    }
    return { TextEncoder, TextDecoder };
})
