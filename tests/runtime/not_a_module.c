/* A shared object that is no module. */
int not_a_module(void);
int not_a_module(void) { return 0; }
