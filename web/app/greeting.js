import { t } from './i18n.js';

/**
 * The greeting of the first screen, by the time of day and, if it is known, by name.
 * @param {string} name
 * @param {number} [hour] 0 to 23
 */
export function greeting(name, hour = new Date().getHours()) {
  const key = `greeting.${hour < 11 ? 'morning' : hour < 18 ? 'day' : 'evening'}`;
  return name ? t(`${key}_name`, { name }) : t(key);
}
