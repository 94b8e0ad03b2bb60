// Intl.DateTimeFormat, Intl.NumberFormat and the toLocale… methods. The process
// knows languages and time zones; this reads the options.
(function (native) {
    'use strict';
    const text = (value) => String(value).toWellFormed();
    const tags = (locales) => {
        if (locales === undefined) return [];
        if (locales === null) throw new TypeError('Incorrect locale information provided');
        return (typeof locales === 'string' ? [locales] : Array.from(locales)).map((tag) => {
            if (typeof tag !== 'string' && typeof tag !== 'object') throw new TypeError('Incorrect locale information provided');
            return text(tag);
        });
    };
    const take = (options, kinds) => {
        const taken = {};
        if (options === undefined) return taken;
        if (options === null) throw new TypeError('the options are null');
        for (const [name, kind] of Object.entries(kinds)) {
            const value = options[name];
            if (value !== undefined) taken[name] = kind(value);
        }
        return taken;
    };
    const count = (value) => {
        const number = Number(value);
        if (!Number.isFinite(number) || number < 0) throw new RangeError(`${value} is out of range`);
        return Math.floor(number);
    };
    const shown = (resolved) => {
        const { facts, ownClock, ...options } = JSON.parse(resolved);
        return options;
    };

    const DATE = {
        timeZone: text, hour12: Boolean, hourCycle: text, weekday: text, year: text, month: text, day: text, hour: text,
        minute: text, second: text, fractionalSecondDigits: count, timeZoneName: text, dateStyle: text, timeStyle: text,
    };
    const resolveDate = (locales, options, needs, defaults) =>
        native.dateResolve(JSON.stringify({ ...take(options, DATE), locales: tags(locales), needs, defaults }));
    const partsOf = (resolved, date) => {
        const flat = native.dateParts(resolved, Number(date));
        const parts = [];
        for (let at = 0; at < flat.length; at += 2) parts.push({ type: flat[at], value: flat[at + 1] });
        return parts;
    };
    const textOf = (resolved, date) => partsOf(resolved, date).map((part) => part.value).join('');
    const moment = (date) => (date === undefined ? Date.now() : date);

    // Callable without `new`, as the standard says.
    const formatter = (Class, name) => {
        const make = function (locales, options) {
            return new Class(locales, options);
        };
        make.prototype = Class.prototype;
        Object.defineProperty(Class.prototype, 'constructor', { value: make, writable: true, configurable: true });
        Object.defineProperty(Class.prototype, Symbol.toStringTag, { value: `Intl.${name}`, configurable: true });
        Object.defineProperty(make, 'name', { value: name, configurable: true });
        Object.defineProperty(make, 'supportedLocalesOf', {
            value: (locales) => tags(locales).filter((tag) => new Class([tag]).resolvedOptions().locale.toLowerCase() === tag.toLowerCase()),
            writable: true,
            configurable: true,
        });
        return make;
    };

    class DateTimeFormat {
        #resolved;
        #format;
        constructor(locales, options) {
            this.#resolved = resolveDate(locales, options, 'any', 'date');
        }
        get format() {
            this.#format ??= (date) => textOf(this.#resolved, moment(date));
            return this.#format;
        }
        formatToParts(date) {
            return partsOf(this.#resolved, moment(date));
        }
        formatRange(from, to) {
            const [start, end] = [textOf(this.#resolved, from), textOf(this.#resolved, to)];
            return start === end ? start : `${start} – ${end}`;
        }
        resolvedOptions() {
            return shown(this.#resolved);
        }
    }

    const NUMBER = {
        style: text, currency: text, currencyDisplay: text, minimumIntegerDigits: count, minimumFractionDigits: count,
        maximumFractionDigits: count, useGrouping: Boolean,
    };
    const resolveNumber = (locales, options) =>
        native.numberResolve(JSON.stringify({ ...take(options, NUMBER), locales: tags(locales) }));
    class NumberFormat {
        #resolved;
        #format;
        constructor(locales, options) {
            this.#resolved = resolveNumber(locales, options);
        }
        get format() {
            this.#format ??= (value) => native.numberFormat(this.#resolved, Number(value));
            return this.#format;
        }
        resolvedOptions() {
            return shown(this.#resolved);
        }
    }

    const Intl = {};
    const define = (target, name, value) => Object.defineProperty(target, name, { value, writable: true, configurable: true });
    define(Intl, 'DateTimeFormat', formatter(DateTimeFormat, 'DateTimeFormat'));
    define(Intl, 'NumberFormat', formatter(NumberFormat, 'NumberFormat'));
    define(Intl, 'getCanonicalLocales', (locales) => tags(locales));

    const toLocale = (needs, defaults) => function (locales, options) {
        const time = Date.prototype.getTime.call(this);
        if (Number.isNaN(time)) return 'Invalid Date';
        return textOf(resolveDate(locales, options, needs, defaults), time);
    };
    const date = {
        toLocaleString: toLocale('any', 'all'),
        toLocaleDateString: toLocale('date', 'date'),
        toLocaleTimeString: toLocale('time', 'time'),
    };
    const number = function (locales, options) {
        return native.numberFormat(resolveNumber(locales, options), Number(this));
    };
    return { Intl, date, number };
})
