#!/usr/bin/env node
// Writes how people write dates and numbers, per language, for the sandbox:
// crates/plugins/src/sandbox/worker/intl/locales/*.json. The facts come from the
// Unicode CLDR, as the Intl of Node 20 or newer tells them. Run it when a
// language is added to the list below. It also writes what the
// tests compare.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LOCALES = ['en-US', 'en-GB', 'de', 'fr', 'es', 'it', 'nl', 'pt-BR', 'sv', 'da', 'nb', 'pl', 'ja'];
const CURRENCIES = ['USD', 'EUR', 'GBP', 'JPY', 'CHF', 'SEK', 'NOK', 'DKK', 'PLN', 'CAD', 'AUD', 'CNY', 'INR', 'BRL', 'XAF'];
// Abbreviation in the time zone database, minutes from UTC, a place, in July?
const ZONES = [
    ['UTC', 0, 'UTC', false], ['GMT', 0, 'Europe/London', false], ['BST', 60, 'Europe/London', true],
    ['WET', 0, 'Europe/Lisbon', false], ['WEST', 60, 'Europe/Lisbon', true],
    ['CET', 60, 'Europe/Berlin', false], ['CEST', 120, 'Europe/Berlin', true],
    ['EET', 120, 'Europe/Helsinki', false], ['EEST', 180, 'Europe/Helsinki', true],
    ['EST', -300, 'America/New_York', false], ['EDT', -240, 'America/New_York', true],
    ['CST', -360, 'America/Chicago', false], ['CDT', -300, 'America/Chicago', true],
    ['MST', -420, 'America/Denver', false], ['MDT', -360, 'America/Denver', true],
    ['PST', -480, 'America/Los_Angeles', false], ['PDT', -420, 'America/Los_Angeles', true],
    ['AKST', -540, 'America/Anchorage', false], ['AKDT', -480, 'America/Anchorage', true],
    ['HST', -600, 'Pacific/Honolulu', false], ['JST', 540, 'Asia/Tokyo', false],
    ['IST', 330, 'Asia/Kolkata', false], ['AEST', 600, 'Australia/Sydney', true], ['AEDT', 660, 'Australia/Sydney', false],
];
const WEEKDAY = { '-': undefined, s: 'short', l: 'long' };
const YEAR = { '-': undefined, n: 'numeric', 2: '2-digit' };
const MONTH = { '-': undefined, n: 'numeric', 2: '2-digit', s: 'short', l: 'long' };
const DAY = { '-': undefined, n: 'numeric', 2: '2-digit' };

// Browsers write a plain space where CLDR has narrow ones before AM and PM.
const plain = (text) => text.replace(/\u202f/g, ' ').replace(/\u2009/g, ' ');
const at = (month, day, hour = 14) => new Date(Date.UTC(2026, month, day, hour, 7, 9));

function extract(locale) {
    const parts = (options, date) =>
        new Intl.DateTimeFormat(locale, { timeZone: 'UTC', ...options }).formatToParts(date)
            .map((part) => ({ type: part.type, value: plain(part.value) }));
    const text = (list) => list.map((part) => part.value).join('');
    const months = [];
    const weekdays = [];
    const known = (lists, list) => {
        const found = lists.findIndex((other) => other.join('|') === list.join('|'));
        return found >= 0 ? found : lists.push(list) - 1;
    };
    const valueOf = (options, type, date) => parts(options, date).find((part) => part.type === type).value;

    // One token per part; names become a list and its number.
    const token = (part, options) => {
        const { type, value } = part;
        if (type === 'literal') return value;
        if (type === 'month') {
            if (value === '3') return '{M}';
            if (value === '03') return '{MM}';
            const list = Array.from({ length: 12 }, (_, month) => valueOf(options, 'month', at(month, 5)));
            return `{M${known(months, list)}}`;
        }
        if (type === 'weekday') {
            const list = Array.from({ length: 7 }, (_, day) => valueOf(options, 'weekday', at(2, 1 + day)));
            return `{E${known(weekdays, list)}}`;
        }
        const forms = {
            year: { 2026: '{y}', 26: '{yy}' }, day: { 5: '{d}', '05': '{dd}' },
            hour: { 14: '{H}', 2: '{h}', '02': '{hh}' }, minute: { 7: '{m}', '07': '{mm}' },
            second: { 9: '{s}', '09': '{ss}' },
        };
        if (type === 'dayPeriod') return '{a}';
        if (type === 'timeZoneName') return '{z}';
        const form = forms[type]?.[value];
        if (!form) throw new Error(`${locale} ${JSON.stringify(options)}: ${type} ${value}`);
        return form;
    };
    const pattern = (options) => {
        const written = parts(options, at(2, 5)).map((part) => token(part, options)).join('');
        // Whether a 24-hour clock writes 04 or 4 shows only in the morning.
        const morning = parts(options, at(2, 5, 4)).find((part) => part.type === 'hour')?.value;
        return morning === '04' ? written.replace('{H}', '{HH}') : written;
    };

    const date = {};
    for (const w of Object.keys(WEEKDAY)) for (const y of Object.keys(YEAR)) {
        for (const m of Object.keys(MONTH)) for (const d of Object.keys(DAY)) {
            const key = `${w}${y}${m}${d}`;
            if (key === '----') continue;
            date[key] = pattern({ weekday: WEEKDAY[w], year: YEAR[y], month: MONTH[m], day: DAY[d] });
        }
    }
    const time = {};
    // How minutes are asked for changes how hours are written.
    for (const cycle of ['own', 'h12', 'h23']) for (const h of ['n', '2']) for (const m of ['n', '2']) {
        for (const fields of ['h', 'hm', 'hms']) {
            time[`${cycle}${h}${m}${fields}`] = pattern({
                hour: YEAR[h], hourCycle: cycle === 'own' ? undefined : cycle,
                minute: fields.includes('m') ? YEAR[m] : undefined, second: fields.includes('s') ? YEAR[m] : undefined,
            });
        }
    }
    time.ms = pattern({ minute: 'numeric', second: 'numeric' });
    time.m = pattern({ minute: 'numeric' });
    time.s = pattern({ second: 'numeric' });
    const styles = {};
    for (const style of ['full', 'long', 'medium', 'short']) styles[style] = pattern({ dateStyle: style });

    const clocks = {};
    for (const style of ['full', 'long', 'medium', 'short']) clocks[style] = pattern({ timeStyle: style });

    // What stands between two pieces.
    const between = (options, before, after) => {
        const list = parts(options, at(2, 5));
        const end = list.findLastIndex((part) => before.includes(part.type));
        const start = list.findIndex((part) => after.includes(part.type));
        return start > end ? text(list.slice(end + 1, start)) : ' ';
    };
    const DATE = ['weekday', 'year', 'month', 'day'];
    const TIME = ['hour', 'minute', 'second', 'dayPeriod'];
    const clock = { hour: 'numeric', minute: '2-digit', hourCycle: 'h23' };
    const whole = { year: 'numeric', day: 'numeric' };
    // The literals of a pattern that ends with one ("5.3.") belong to the date.
    const glue = (options, style) => {
        const both = text(parts({ ...options, ...(style ? { timeStyle: 'short' } : clock) }, at(2, 5)));
        const day = text(parts(options, at(2, 5)));
        const hour = text(parts(style ? { timeStyle: 'short' } : clock, at(2, 5)));
        if (!both.startsWith(day) || !both.endsWith(hour)) return between({ ...options, ...clock }, DATE, TIME);
        return both.slice(day.length, both.length - hour.length);
    };
    const join = {
        full: glue({ weekday: 'long', ...whole, month: 'long' }), long: glue({ ...whole, month: 'long' }),
        medium: glue({ ...whole, month: 'short' }), short: glue({ ...whole, month: 'numeric' }),
        weekday: glue({ weekday: 'long' }),
        styleFull: glue({ dateStyle: 'full' }, true), styleLong: glue({ dateStyle: 'long' }, true),
        styleMedium: glue({ dateStyle: 'medium' }, true), styleShort: glue({ dateStyle: 'short' }, true),
        zoneOfTime: between({ ...clock, timeZoneName: 'short' }, TIME, ['timeZoneName']),
        zoneOfDate: between({ ...whole, month: 'numeric', timeZoneName: 'short' }, DATE, ['timeZoneName']),
    };

    const zoneName = (zone, style, summer) =>
        plain(new Intl.DateTimeFormat(locale, { timeZone: zone, timeZoneName: style }).formatToParts(at(summer ? 6 : 0, 5))
            .find((part) => part.type === 'timeZoneName').value);
    const zones = {};
    for (const [abbreviation, minutes, zone, summer] of ZONES) {
        const short = zoneName(zone, 'short', summer);
        const long = zoneName(zone, 'long', summer);
        const offset = /^(GMT|UTC)[+−-]/;
        zones[`${abbreviation}${minutes}`] = [offset.test(short) ? null : short, offset.test(long) ? null : long];
    }
    const utc = zoneName('Asia/Kathmandu', 'shortOffset').replace(/[+−-].*/, '');
    const minus = zoneName('America/Caracas', 'shortOffset').replace(utc, '')[0];

    const colon = zoneName('Asia/Kathmandu', 'longOffset').at(-3);

    const numberParts = (value, options) =>
        new Intl.NumberFormat(locale, options).formatToParts(value).map((part) => ({ ...part, value: part.value }));
    const one = (list, type) => list.find((part) => part.type === type)?.value ?? '';
    const large = numberParts(-1234567.5);
    const around = (value, options, ...kinds) =>
        numberParts(value, options)
            .map(({ type, value: written }) => (type === 'literal' ? written : type === 'minusSign' ? '{minus}'
                : kinds.includes(type) ? '{sign}' : '{number}'))
            .join('').replace(/(\{number\})+/g, '{number}');
    const number = {
        decimal: one(large, 'decimal'), group: one(large, 'group'), minus: one(large, 'minusSign'),
        groupFrom: one(numberParts(1234), 'group') ? 4 : 5,
        percent: around(0.5, { style: 'percent' }, 'percentSign').replace('{sign}', '%'),
        currency: around(5, { style: 'currency', currency: 'EUR' }, 'currency'),
        negative: around(-5, { style: 'currency', currency: 'EUR' }, 'currency'),
        symbols: Object.fromEntries(CURRENCIES.map((currency) =>
            [currency, one(numberParts(5, { style: 'currency', currency }), 'currency')])),
    };
    const periods = [4, 14].map((hour) => valueOf({ hour: 'numeric', hourCycle: 'h12' }, 'dayPeriod', at(2, 5, hour)));
    const twelve = parts({ hour: 'numeric' }, at(2, 5)).some((part) => part.type === 'dayPeriod');
    return { months, weekdays, periods, twelve, date, time, styles, clocks, join, utc, minus, colon, zones, number };
}

// What the tests compare: moments, places and options, as Node writes them.
function examples() {
    const moments = [Date.UTC(2026, 2, 5, 4, 7, 9, 42), Date.UTC(2026, 6, 14, 12, 0, 0), Date.UTC(1999, 11, 31, 23, 59, 59)];
    const places = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata'];
    const choices = [
        {}, { dateStyle: 'full' }, { dateStyle: 'short', timeStyle: 'short' }, { dateStyle: 'medium', timeStyle: 'medium' },
        { dateStyle: 'long', timeStyle: 'long' }, { timeStyle: 'full' },
        { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' },
        { weekday: 'short', month: 'short', day: 'numeric' }, { month: 'long', year: 'numeric' },
        { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' },
        { year: 'numeric', month: 'long', day: 'numeric', hour: 'numeric', minute: 'numeric' },
        { hour: 'numeric', minute: '2-digit', hour12: true }, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' },
        { hour: 'numeric', minute: 'numeric', timeZoneName: 'short' }, { hour: 'numeric', minute: '2-digit', timeZoneName: 'longOffset' },
        { weekday: 'long' }, { month: 'short' }, { hour: 'numeric' }, { minute: 'numeric', second: 'numeric' },
    ];
    const methods = ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString'];
    const rows = [];
    for (const locale of LOCALES) {
        for (const [index, options] of choices.entries()) {
            const [moment, timeZone] = [moments[index % 3], places[index % 4]];
            const given = { timeZone, ...options };
            rows.push(['format', locale, given, moment, plain(new Intl.DateTimeFormat(locale, given).format(moment))]);
        }
        for (const method of methods) for (const timeZone of places) {
            rows.push([method, locale, { timeZone }, moments[0], plain(new Date(moments[0])[method](locale, { timeZone }))]);
        }
    }
    return rows;
}

function numbers() {
    const choices = [
        {}, { minimumFractionDigits: 2 }, { maximumFractionDigits: 0 }, { style: 'percent' }, { useGrouping: false },
        { style: 'percent', maximumFractionDigits: 1 }, { style: 'currency', currency: 'EUR' }, { style: 'currency', currency: 'JPY' },
        { style: 'currency', currency: 'USD' }, { minimumIntegerDigits: 3 }, { style: 'currency', currency: 'XAF' },
    ];
    const rows = [];
    for (const locale of LOCALES) for (const options of choices) for (const value of [1234.5678, -0.256, 1234567, 0]) {
        rows.push([locale, options, value, new Intl.NumberFormat(locale, options).format(value)]);
    }
    return rows;
}

const crate = join(dirname(fileURLToPath(import.meta.url)), '../crates/plugins');
const folder = join(crate, 'src/sandbox/worker/intl/locales');
const list = (rows) => `[\n${rows.map((row) => JSON.stringify(row)).join(',\n')}\n]\n`;
writeFileSync(join(crate, 'tests/it/dates.json'), list(examples()));
writeFileSync(join(crate, 'tests/it/numbers.json'), list(numbers()));
mkdirSync(folder, { recursive: true });
for (const locale of LOCALES) {
    const found = extract(locale);
    const lines = Object.entries(found).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
    writeFileSync(join(folder, `${locale}.json`), `{\n${lines.join(',\n')}\n}\n`);
}
