// Permalinks: everything a view shows stands in the address.

export interface Route { view: string; parameters: URLSearchParams }

export function current(): Route {
  const [, view, query] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash)!; // a question may hold more question marks
  return { view: view || "ask", parameters: new URLSearchParams(query) };
}

export function href(view: string, parameters: Record<string, string | string[] | undefined | null>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const one of Array.isArray(value) ? value : [value]) if (one) query.append(name, one);
  return `#/${view}?${query}`;
}

export function go(address: string): void {
  if (location.hash === address) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = address;
}

export function note(address: string): void {
  history.replaceState(null, "", address);
}
