// The screens are listed once, in web/screens.json; the server puts the list into the page. A row has
//   path     with :names; a name with ? is optional
//   module   the file below screens/, loaded when the screen is first shown
//   menu     the menu group it appears in, with its icon, title and (optional) unread count
//   call     the endpoint that the screen begins with; it is for callers who may call it
//   needs    what else its menu entry needs: {any: type}: any permission on the type; {update: type}: that permission;
//            {administer: type}: read_all or update
//   section  the menu entry that is current while the screen is shown, when it is not the path itself
//   beside   the list that stays on the left of a record in a wide window
//   texts    the parts of the texts that the screen needs besides those of the first screens
//   public   shown before sign-in
//   client   {module, title, texts}: what replaces them for a customer of the bank, who has screens of their own
//   only     'staff' or 'client': whose menu has the entry
export const rows = JSON.parse(document.getElementById('screens').textContent);
