// What the page says, in the language of the browser or the one that was chosen: one file a language, in texts/.

import de from "./texts/de.json";
import en from "./texts/en.json";
import es from "./texts/es.json";

export type Key = keyof typeof en;
type Holes<T> = Record<string, T>;

export const LANGUAGES: Record<string, { name: string; texts: Record<Key, string>; direction: "ltr" | "rtl" }> = {
  en: { name: "English", texts: en, direction: "ltr" },
  de: { name: "Deutsch", texts: de, direction: "ltr" },
  es: { name: "Español", texts: es, direction: "ltr" },
};

export const language: string = [localStorage.getItem("clew-language") ?? "", ...navigator.languages]
  .map((one) => one.toLowerCase().split("-")[0]!).find((one) => one in LANGUAGES) ?? "en";
const { texts, direction } = LANGUAGES[language]!;
document.documentElement.lang = language;
document.documentElement.dir = direction;

export function chooseLanguage(chosen: string): void {
  localStorage.setItem("clew-language", chosen);
  location.reload();
}

/** A text; `{name}` in it is filled. */
export const t = (key: Key, holes: Holes<string | number> = {}): string =>
  texts[key].replace(/\{(\w+)\}/g, (_, name: string) => String(holes[name] ?? ""));

/** A text with elements in it. */
export function parts<T>(key: Key, holes: Holes<T>): (string | T)[] {
  return texts[key].split(/\{(\w+)\}/).map((part, place) => (place % 2 ? holes[part]! : part));
}

type Counted = { [K in Key]: K extends `${infer Stem}.one` ? Stem : never }[Key];
const plural = new Intl.PluralRules(language);

/** A text for so many: `key.one` or `key.other`, in which `{count}` is filled. */
export const counted = (key: Counted, count: number, holes: Holes<string | number> = {}): string =>
  t(`${key}.${plural.select(count) === "one" ? "one" : "other"}` as Key, { count: count.toLocaleString(language), ...holes });

const dates = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
/** Seconds since 1970 as a date. */
export const date = (seconds: number | null): string => (seconds === null ? t("never") : dates.format(new Date(1000 * seconds)));
