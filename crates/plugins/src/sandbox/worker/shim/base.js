// What stands in the global object of every call. Larger parts are read when
// they are first used. Gives back the ways in: a timer that is due, an answer, and
// the opening of the door to the gateway.
(function (native) {
    'use strict';
    const define = (target, name, value) =>
        Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
    const text = (value) => String(value).toWellFormed();

    // The larger parts, each read once.
    const parts = Object.create(null);
    const part = (name) => (parts[name] ??= native.load(name)(native));
    const lazily = (target, name, from) =>
        Object.defineProperty(target, name, {
            configurable: true,
            enumerable: false,
            get() {
                const value = part(from)[name];
                define(target, name, value);
                return value;
            },
            set(value) {
                define(target, name, value);
            },
        });
    for (const name of ['URL', 'URLSearchParams']) lazily(globalThis, name, 'url');
    for (const name of ['TextEncoder', 'TextDecoder']) lazily(globalThis, name, 'text');
    lazily(globalThis, 'structuredClone', 'clone');
    lazily(globalThis, 'Intl', 'intl');
    for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) {
        define(Date.prototype, name, { [name](...args) { return part('intl').date[name].apply(this, args); } }[name]);
    }
    for (const target of [Number.prototype, BigInt.prototype]) {
        define(target, 'toLocaleString', function toLocaleString(...args) {
            return part('intl').number.apply(this, args);
        });
    }

    // The console: one line of text per call.
    const inspect = (value, depth, seen) => {
        if (typeof value === 'string') return depth === 0 ? value : JSON.stringify(value);
        if (typeof value === 'bigint') return `${value}n`;
        if (typeof value === 'function') return `[Function ${value.name || '(anonymous)'}]`;
        if (typeof value !== 'object' || value === null) return String(value);
        if (value instanceof Error) return value.stack ? `${value.name}: ${value.message}\n${value.stack}` : String(value);
        if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
        if (value instanceof RegExp) return String(value);
        if (seen.includes(value)) return '[Circular]';
        if (depth > 4) return Array.isArray(value) ? '[Array]' : '[Object]';
        const inside = (item) => inspect(item, depth + 1, [...seen, value]);
        const list = (items) => {
            const shown = [];
            for (const item of items) {
                if (shown.length === 100) {
                    shown.push('…');
                    break;
                }
                shown.push(item);
            }
            return shown.length === 0 ? '' : ` ${shown.join(', ')} `;
        };
        if (Array.isArray(value)) return `[${list(value.map(inside))}]`;
        if (value instanceof Map) return `Map {${list([...value].map(([key, item]) => `${inside(key)} => ${inside(item)}`))}}`;
        if (value instanceof Set) return `Set {${list([...value].map(inside))}}`;
        return `{${list(Object.keys(value).map((key) => `${key}: ${inside(value[key])}`))}}`;
    };
    const line = (values) => text(values.map((value) => inspect(value, 0, [])).join(' '));
    const console = {};
    const levels = { log: 'info', info: 'info', dir: 'info', table: 'info', debug: 'debug', trace: 'debug', warn: 'warn', error: 'error' };
    for (const [name, level] of Object.entries(levels)) {
        define(console, name, { [name](...values) { native.write(level, line(values)); } }[name]);
    }
    define(console, 'assert', function assert(good, ...values) {
        if (!good) native.write('error', line(['Assertion failed', ...values]));
    });
    for (const name of ['group', 'groupCollapsed', 'groupEnd', 'time', 'timeEnd', 'timeLog', 'count', 'clear']) {
        define(console, name, { [name]() {} }[name]);
    }
    define(globalThis, 'console', console);

    // Timers: the process counts the time, the callbacks stay here.
    const timers = new Map();
    let lastTimer = 0;
    const start = (callback, ms, args, repeats) => {
        if (typeof callback !== 'function') throw new TypeError('the callback of a timer is a function');
        const id = ++lastTimer;
        native.setTimer(id, Number(ms ?? 0), repeats);
        timers.set(id, { callback, args, repeats });
        return id;
    };
    const stop = (id) => {
        if (timers.delete(id)) native.clearTimer(id);
    };
    define(globalThis, 'setTimeout', function setTimeout(callback, ms, ...args) {
        return start(callback, ms, args, false);
    });
    define(globalThis, 'setInterval', function setInterval(callback, ms, ...args) {
        return start(callback, ms, args, true);
    });
    define(globalThis, 'clearTimeout', function clearTimeout(id) {
        stop(id);
    });
    define(globalThis, 'clearInterval', function clearInterval(id) {
        stop(id);
    });
    const fire = (id) => {
        const timer = timers.get(id);
        if (timer === undefined) return;
        if (!timer.repeats) timers.delete(id);
        timer.callback(...timer.args);
    };

    const crypto = {};
    define(crypto, 'randomUUID', function randomUUID() {
        return native.uuid();
    });
    define(crypto, 'getRandomValues', function getRandomValues(array) {
        const whole = ArrayBuffer.isView(array) && !(array instanceof DataView) && !/Float/.test(array[Symbol.toStringTag]);
        if (!whole) throw new DOMException('getRandomValues takes an array of integers', 'TypeMismatchError');
        new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(native.random(array.byteLength));
        return array;
    });
    define(globalThis, 'crypto', crypto);

    // Questions to the gateway, for calls that may ask.
    const asked = new Map();
    const open = () =>
        define(globalThis, 'host', function host(name, value) {
            return new Promise((resolve, reject) => {
                const id = native.ask(text(name), JSON.stringify(value) ?? 'null');
                asked.set(id, { resolve, reject });
            });
        });
    const told = (id, good, answer) => {
        const question = asked.get(id);
        asked.delete(id);
        if (good) question?.resolve(JSON.parse(answer));
        else question?.reject(new Error(answer));
    };
    return { fire, told, open };
})
