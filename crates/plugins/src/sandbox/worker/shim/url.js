// URL and URLSearchParams. The process reads and writes URLs; this is their form.
(function (native) {
    'use strict';
    const text = (value) => String(value).toWellFormed();
    const NAMES = ['href', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash', 'origin'];
    const link = Symbol('link');

    class URLSearchParams {
        #pairs = [];
        #changed = null;
        constructor(init = '') {
            if (typeof init === 'object' && init !== null) {
                const pairs = typeof init[Symbol.iterator] === 'function' ? init : Object.entries(init);
                for (const pair of pairs) {
                    const both = [...pair];
                    if (both.length !== 2) throw new TypeError('Each pair must be a name and a value');
                    this.#pairs.push([text(both[0]), text(both[1])]);
                }
            } else {
                this.#pairs = native.formParse(text(init).replace(/^\?/, ''));
            }
        }
        // For the URL that these belong to: how it hears of a change, and its own changes.
        [link](changed) {
            this.#changed = changed;
            return (search) => {
                this.#pairs = native.formParse(search.replace(/^\?/, ''));
            };
        }
        #tell() {
            this.#changed?.(this.toString());
        }
        get size() {
            return this.#pairs.length;
        }
        append(name, value) {
            this.#pairs.push([text(name), text(value)]);
            this.#tell();
        }
        delete(name, value) {
            const matches = (pair) => pair[0] === text(name) && (value === undefined || pair[1] === text(value));
            this.#pairs = this.#pairs.filter((pair) => !matches(pair));
            this.#tell();
        }
        get(name) {
            return this.#pairs.find((pair) => pair[0] === text(name))?.[1] ?? null;
        }
        getAll(name) {
            return this.#pairs.filter((pair) => pair[0] === text(name)).map((pair) => pair[1]);
        }
        has(name, value) {
            return this.#pairs.some((pair) => pair[0] === text(name) && (value === undefined || pair[1] === text(value)));
        }
        set(name, value) {
            const at = this.#pairs.findIndex((pair) => pair[0] === text(name));
            if (at < 0) return this.append(name, value);
            this.#pairs[at][1] = text(value);
            this.#pairs = this.#pairs.filter((pair, index) => index <= at || pair[0] !== text(name));
            this.#tell();
        }
        sort() {
            this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
            this.#tell();
        }
        forEach(callback, self) {
            for (const [name, value] of this.#pairs) callback.call(self, value, name, this);
        }
        *entries() {
            for (const pair of this.#pairs) yield [...pair];
        }
        *keys() {
            for (const pair of this.#pairs) yield pair[0];
        }
        *values() {
            for (const pair of this.#pairs) yield pair[1];
        }
        [Symbol.iterator]() {
            return this.entries();
        }
        toString() {
            return native.formWrite(this.#pairs);
        }
    }

    class URL {
        #pieces;
        #params = null;
        #renew = null;
        constructor(url, base) {
            this.#read(native.url(text(url), base === undefined ? undefined : text(base)));
        }
        static canParse(url, base) {
            try {
                return Boolean(new URL(url, base));
            } catch {
                return false;
            }
        }
        static parse(url, base) {
            try {
                return new URL(url, base);
            } catch {
                return null;
            }
        }
        #read(pieces) {
            this.#pieces = Object.fromEntries(NAMES.map((name, at) => [name, pieces[at]]));
        }
        static piece(url, name) {
            return url.#pieces[name];
        }
        static change(url, name, value) {
            if (name === 'href') url.#read(native.url(text(value), undefined));
            else url.#read(native.urlSet(url.#pieces.href, name, text(value)));
            if (name === 'href' || name === 'search') url.#renew?.(url.#pieces.search);
        }
        get searchParams() {
            if (this.#params === null) {
                this.#params = new URLSearchParams(this.#pieces.search);
                this.#renew = this.#params[link]((search) => {
                    this.#read(native.urlSet(this.#pieces.href, 'search', search));
                });
            }
            return this.#params;
        }
        toString() {
            return this.#pieces.href;
        }
        toJSON() {
            return this.#pieces.href;
        }
    }
    const { piece, change } = URL;
    delete URL.piece;
    delete URL.change;
    for (const name of NAMES) {
        const set = name === 'origin' ? undefined : function (value) { change(this, name, value); };
        Object.defineProperty(URL.prototype, name, {
            get() {
                return piece(this, name);
            },
            set,
            enumerable: true,
            configurable: true,
        });
    }
    return { URL, URLSearchParams };
})
